/** Rules of a Configuration's secret bindings that need no stored state. (rest-contract 3.3) */
import { Refusal } from '../kernel/errors.ts';
import type { SecretBindings } from './input.ts';

const reserved = /^(OPENCLAW_|CODEX_|OPENAI_|ANTHROPIC_|OCC_|KUBERNETES_)|^(PATH|HOME|HTTP_PROXY|HTTPS_PROXY|NO_PROXY|ALL_PROXY)$/i;

/** @throws Refusal INVALID_REQUEST for a reserved destination or a Secret of another Namespace */
export const assertSecretBindings = (namespaceId: string, bindings: SecretBindings | undefined): void => {
  for (const [variable, { source }] of Object.entries(bindings ?? {})) {
    const path = `/secretBindings/${variable}`;
    if (reserved.test(variable)) throw new Refusal('INVALID_REQUEST', `${path} is a reserved destination`, { details: [{ path, code: 'INVALID_VALUE' }] });
    if (source.namespaceId !== namespaceId) {
      const at = `${path}/source/namespaceId`;
      throw new Refusal('INVALID_REQUEST', `${at} names another Namespace`, { details: [{ path: at, code: 'INVALID_VALUE' }] });
    }
  }
};

/** The Secrets the bindings name, each once. */
export const secretsOf = (bindings: SecretBindings | undefined): readonly string[] => [...new Set(Object.values(bindings ?? {}).map(({ source }) => source.id))];

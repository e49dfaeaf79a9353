/** Grants on the credentials a draft refers to: what the actor must hold, and what the Agent's own principal must. (iam-auth-audit 3.2) */
import { ref, type Permission } from '../iam/authorizer.ts';
import { Refusal } from '../kernel/errors.ts';
import type { RegisteredResource } from '../namespace/messages.ts';
import type { AgentSettings, HarnessAuth } from './settings.ts';

type Sources = { readonly harnessAuth?: HarnessAuth | null | undefined; readonly credentialSources?: AgentSettings['credentialSources'] | undefined };

const harnessPermission = (namespaceId: string, auth: HarnessAuth | null | undefined): readonly Permission[] => {
  if (auth === null || auth === undefined || auth.method === 'runtime') return [];
  if (auth.method === 'credential_source') return [['operate', ref.in('credential_source', namespaceId, auth.sourceId)]];
  return auth.source.kind === 'secret'
    ? [['operate', ref.in('secret', namespaceId, auth.source.id)]]
    : [['read', ref.in('service_account', namespaceId, auth.source.id)]];
};

/** What the caller must hold for these sources. */
export const actorPermissions = (namespaceId: string, { harnessAuth, credentialSources }: Sources): readonly Permission[] => {
  const all = [
    ...harnessPermission(namespaceId, harnessAuth),
    ...(credentialSources ?? []).map(({ sourceId }): Permission => ['operate', ref.in('credential_source', namespaceId, sourceId)]),
  ];
  return all.filter(([, resource], index) => all.findIndex(([, other]) => other.kind === resource.kind && other.id === resource.id) === index);
};

/** What the Agent's service principal must hold at deploy and dispatch: nothing for managed accounts and `runtime`. */
export const agentPrincipalPermissions = (namespaceId: string, sources: Sources): readonly Permission[] =>
  actorPermissions(namespaceId, sources).filter(([action]) => action === 'operate');

/** The registered resources a draft refers to besides its Configuration. */
export const sourceReferences = ({ harnessAuth }: Sources): readonly RegisteredResource[] => {
  if (harnessAuth === null || harnessAuth === undefined || harnessAuth.method === 'runtime') return [];
  if (harnessAuth.method === 'credential_source') return [{ kind: 'credential_source', id: harnessAuth.sourceId }];
  return [{ kind: harnessAuth.source.kind, id: harnessAuth.source.id }];
};

const invalid = (path: string, message: string): Refusal => new Refusal('INVALID_REQUEST', message, { details: [{ path, code: 'INVALID_VALUE' }] });

/**
 * Rules of a binding that need no stored state.
 * @throws Refusal INVALID_REQUEST for a Secret of another Namespace or an unlisted credential source, NOT_FOUND for a foreign account
 */
export const assertSources = (namespaceId: string, { harnessAuth, credentialSources }: Sources): void => {
  if (harnessAuth === null || harnessAuth === undefined || harnessAuth.method === 'runtime') return;
  if (harnessAuth.method === 'credential_source') {
    if (credentialSources?.some(({ sourceId }) => sourceId === harnessAuth.sourceId) !== true)
      throw invalid('/harnessAuth/sourceId', 'The credential source is not listed in credentialSources');
    return;
  }
  if (harnessAuth.source.namespaceId === namespaceId) return;
  if (harnessAuth.source.kind === 'secret') throw invalid('/harnessAuth/source/namespaceId', 'The Secret belongs to another Namespace');
};

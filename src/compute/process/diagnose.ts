/** Fresh evidence about the gateway of one revision: read from its records and asked of itself, changing nothing. (compute-drivers section 12) */
import type { DiagnosticCheck } from '../driver.ts';
import { readRecord, readText } from './disk.ts';
import type { AgentFolder, RuntimeRecord } from './layout.ts';
import { probeGateway, type GatewayState } from './probe.ts';
import { isAlive } from './process-identity.ts';

const component = 'gateway';
const status = (state: DiagnosticCheck['state'], more: Pick<DiagnosticCheck, 'code'> & { readonly checkedAt: string | null }): DiagnosticCheck => ({ component, check: 'runtime-status', state, ...more });
const unavailable = status('unknown', { checkedAt: null, code: 'UNAVAILABLE' });

const checkOf = (state: GatewayState): DiagnosticCheck => {
  const checkedAt = new Date().toISOString();
  switch (state.kind) {
    case 'ready':
      return status('succeeded', { checkedAt });
    case 'starting':
      return status('unknown', { checkedAt, code: 'STARTING' });
    case 'failed': {
      const { check, code, checkedAt: heldAt } = state.failure;
      return { component: state.failure.component, check, state: 'failed', checkedAt: heldAt, code };
    }
    case 'foreign':
      return unavailable;
  }
};

/** What a gateway that was replaced while it was asked has said, is nobody's evidence. */
export const diagnoseGateway = async (folder: AgentFolder, revisionId: string): Promise<readonly DiagnosticCheck[]> => {
  const current = () => readRecord<RuntimeRecord>(folder.runtime);
  const record = await current();
  if (record?.revisionId !== revisionId) return [unavailable];
  if (record.failure !== undefined) return [checkOf({ kind: 'failed', failure: record.failure })];
  if (record.process === undefined || !isAlive(record.process)) return [unavailable];
  const state = await probeGateway(record, (await readText(folder.token)) ?? '');
  return [(await current())?.startId === record.startId ? checkOf(state) : unavailable];
};

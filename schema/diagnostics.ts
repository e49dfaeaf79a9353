/** Diagnostics in the schema: fresh checks of one version, asked for by a mutation because asking takes `operate`. (agent-lifecycle section 8) */
import type { Diagnostics } from '../src/deployment/diagnose.ts';
import { builder } from './builder.ts';
import { revisionPlace } from './place.ts';

const DiagnosticState = builder.enumType('DiagnosticState', { values: ['succeeded', 'failed', 'unknown'] as const });

const DiagnosticCheck = builder.objectRef<Diagnostics['checks'][number]>('DiagnosticCheck').implement({
  fields: (t) => ({
    component: t.exposeString('component'),
    check: t.exposeString('check'),
    state: t.expose('state', { type: DiagnosticState }),
    checkedAt: t.expose('checkedAt', { type: 'Timestamp', nullable: true, description: 'Null when nothing could be asked.' }),
    code: t.exposeString('code', { nullable: true }),
  }),
});

const DiagnosticsType = builder.objectRef<Diagnostics>('Diagnostics').implement({
  description: 'What was found just now; nothing of it is stored, and it proves no model response.',
  fields: (t) => ({
    revisionId: t.exposeID('revisionId'),
    observedAt: t.expose('observedAt', { type: 'Timestamp' }),
    checks: t.expose('checks', { type: [DiagnosticCheck], description: 'At most 32, a held startup failure first.' }),
  }),
});

builder.relayMutationField(
  'diagnoseAgentDeployment',
  { inputFields: (t) => ({ id: t.id({ required: true }), namespaceId: t.id(), agentId: t.id() }) },
  {
    errors: {},
    resolve: async (_, { input }, context) => {
      const place = await revisionPlace(context, 'Deployment', input, { action: 'openclaw.agent_deployments.diagnostics.run', permission: 'read' });
      return { diagnostics: await context.services.revisions.diagnose(context.caller, place) };
    },
  },
  { outputFields: (t) => ({ diagnostics: t.expose('diagnostics', { type: DiagnosticsType }) }) },
);

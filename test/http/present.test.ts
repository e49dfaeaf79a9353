/** What REST shows of a resource: which members, in which order, and what is left when saved settings cannot be read. (rest-contract 2.2, 2.7, 2.8, 3.1 to 3.3) */
import { describe, expect, it } from 'vitest';
import { accessBinding, agent, configuration, deployment, installation, issuedServiceKey, namespace, revision, role, type Resource } from '../../src/http/rest/resources.ts';
import { parse } from '../../src/kernel/parse.ts';
import { agentId, configurationId, namespaceId, revisionId } from './edge.ts';
import { accessBindingView, agentView, configurationView, deploymentView, installationView, namespaceView, revisionView, roleView, serviceKeyView } from './views.ts';

const unreadable = (field: string) => ({ unreadable: field });

/** The members of an answer in their order, after it was found to fit its own schema. */
const members = <View>({ schema, present }: Resource<View>, view: View): string => {
  const presented = present(view);
  parse(schema, presented);
  return Object.keys(presented!).join(' ');
};

describe('members and their order', () => {
  it('of an Installation', () => expect(members(installation, installationView)).toBe('id name createdAt'));

  it('of a Namespace', () => expect(members(namespace, namespaceView)).toBe('id name status createdAt'));

  it('of a Role and its permissions', () => {
    expect(members(role, roleView)).toBe('id namespaceId name permissions');
    expect(members(role, { ...roleView, name: undefined })).toBe('id namespaceId permissions');
    expect(JSON.stringify(role.present(roleView).permissions)).toBe('[{"action":"read","resourceKind":"agent"}]');
  });

  it('of a binding', () => {
    expect(members(accessBinding, accessBindingView)).toBe('id namespaceId subjectKind subjectId roleId resourceKind resourceId');
    expect(members(accessBinding, { ...accessBindingView, resourceKind: undefined, resourceId: undefined })).toBe('id namespaceId subjectKind subjectId roleId');
  });

  it('of an issued key', () => {
    expect(members(issuedServiceKey, serviceKeyView)).toBe('id servicePrincipalId namespaceId name expiresAt key');
    expect(members(issuedServiceKey, { ...serviceKeyView, namespaceId: undefined })).toBe('id servicePrincipalId name expiresAt key');
  });

  it('of a Configuration', () => {
    expect(members(configuration, configurationView)).toBe('id namespaceId kind generation values secretBindings createdAt');
    const bare = { ...configurationView, settings: { values: {} } };
    expect(members(configuration, bare)).toBe('id namespaceId kind generation values createdAt');
  });

  it('of an Agent', () => {
    expect(members(agent, agentView)).toBe(
      'id namespaceId name servicePrincipalId configurationId backendId harnessAuth executionMode credentialSources plugins pluginApprovers desiredRuntimeState activeRevisionId status createdAt',
    );
    const bare = { ...agentView, activeRevisionId: null, settings: { harnessAuth: null, credentialSources: [] } };
    expect(members(agent, bare)).toBe(
      'id namespaceId name servicePrincipalId configurationId backendId harnessAuth executionMode credentialSources desiredRuntimeState status createdAt',
    );
  });

  it('of an AgentRevision', () =>
    expect(members(revision, revisionView)).toBe(
      'id namespaceId agentId revision backendId configurationId configurationKind configurationGeneration configuration harness compute harnessAuth plugins credentialSources createdAt',
    ));

  it('of a deployment', () => {
    expect(members(deployment, deploymentView)).toBe('deploymentId namespaceId agentId status error warnings progress cleanup');
    expect(JSON.stringify(deployment.present(deploymentView))).toContain('"data":{"a":2,"z":1}},"warnings":[{"code":"PLUGIN_INSTALL_FAILED","pluginId":"a@hub"}],"progress":null,"cleanup":null');
  });
});

describe('the text of settings', () => {
  it('is the same however storage has sorted them', () => {
    expect(JSON.stringify(agent.present(agentView))).toContain(
      `"harnessAuth":{"method":"api_key","source":{"kind":"secret","namespaceId":"${namespaceId}","id":"sec_00000001-0000-4000-8000-000000000000"}},"executionMode":"embedded","credentialSources":[],` +
        '"plugins":{"a@hub":{"enabled":false,"tools":{"run":{"approval":"none","reviewer":"human"}}},"z@hub":{"approvers":[],"enabled":true}},"pluginApprovers":[{"channel":"slack","id":"U1"}]',
    );
    expect(JSON.stringify(revision.present(revisionView))).toContain(
      '"configuration":{"a":{"c":2,"d":1},"z":1},"harness":{"id":"openclaw","version":"2026.9.9","mode":"embedded"},"compute":{"id":"process","implementation":"exuvia"},"harnessAuth":{"method":"runtime"},' +
        '"plugins":{"driver":{"id":"process","implementation":"exuvia"},"plugins":{"a@hub":{"enabled":true}}}',
    );
  });

  it('keeps a cleared plugin map visible', () => {
    const cleared = { ...agentView, settings: { harnessAuth: null, credentialSources: [], plugins: {} } };
    expect(JSON.stringify(agent.present(cleared))).toContain('"credentialSources":[],"plugins":{},');
  });
});

describe('settings that cannot be read', () => {
  it('leave an Agent without any of them', () => {
    const view = { ...agentView, settings: unreadable('plugins') };
    expect(members(agent, view)).toBe(
      'id namespaceId name servicePrincipalId configurationId backendId executionMode desiredRuntimeState activeRevisionId status createdAt configurationReadError',
    );
    expect(agent.present(view)).toMatchObject({ id: agentId, configurationReadError: { code: 'SAVED_CONFIGURATION_UNREADABLE', field: 'plugins' } });
  });

  it('leave an AgentRevision its place only', () => {
    const view = { ...revisionView, settings: unreadable('harnessAuth') };
    expect(members(revision, view)).toBe('id namespaceId agentId revision backendId createdAt configurationReadError');
    expect(revision.present(view)).toMatchObject({ id: revisionId, revision: 2, configurationReadError: { field: 'harnessAuth' } });
  });

  it('leave a Configuration its generation', () => {
    const view = { ...configurationView, settings: unreadable('secretBindings') };
    expect(members(configuration, view)).toBe('id namespaceId kind generation createdAt configurationReadError');
    expect(configuration.present(view)).toMatchObject({ id: configurationId, configurationReadError: { field: 'secretBindings' } });
  });

  it.each([['credentialSources'], ['values']])('name %s by the contract’s word for anything else', (field) =>
    expect(agent.present({ ...agentView, settings: unreadable(field) })).toMatchObject({ configurationReadError: { field: 'configuration' } }),
  );
});

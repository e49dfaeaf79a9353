/** A Configuration's generations, and what its document may not hold. */
import { describe, expect, it } from 'vitest';
import { configurationDecider } from '../../src/configuration/configuration.ts';
import { assertDocument } from '../../src/configuration/document.ts';
import type { ConfigurationEvent } from '../../src/configuration/messages.ts';
import type { Refusal } from '../../src/kernel/errors.ts';
import { deciderSpec } from '../support/specs.ts';

const given = deciderSpec(configurationDecider);
const place = { configurationId: 'cfg_1', namespaceId: 'ns_1' };
const settings = { values: { model: 'm' } };
const created: ConfigurationEvent = { type: 'ConfigurationCreated', data: { ...place, generation: 1, kind: 'agent', settings } };
const replaced = (generation: number): ConfigurationEvent => ({ type: 'ConfigurationReplaced', data: { ...place, generation, settings } });
const deleted: ConfigurationEvent = { type: 'ConfigurationDeleted', data: place };
const create = { type: 'CreateConfiguration', ...place, settings } as const;

describe('a Configuration', () => {
  it('begins with generation 1, once', () => {
    given().when(create).then(created);
    given(created).when(create).refused('RESOURCE_CONFLICT');
    given(created, deleted).when(create).refused('RESOURCE_CONFLICT');
  });

  it('rises by exactly one with every change, and only from the generation the caller read', () => {
    given(created).when({ type: 'ReplaceConfiguration', settings }).then(replaced(2));
    given(created, replaced(2)).when({ type: 'ReplaceConfiguration', settings, ifMatch: 2 }).then(replaced(3));
    given(created, replaced(2)).when({ type: 'ReplaceConfiguration', settings, ifMatch: 1 }).refused('RESOURCE_CONFLICT');
  });

  it('can be replaced although its saved settings cannot be read', () => {
    given({ type: 'ConfigurationCreated', data: { ...place, generation: 1, kind: 'agent', settings: { unreadable: 'values' } } })
      .when({ type: 'ReplaceConfiguration', settings })
      .then(replaced(2));
  });

  it('ends once; a deleted one is not found', () => {
    given(created).when({ type: 'DeleteConfiguration' }).then(deleted);
    given(created, deleted).when({ type: 'DeleteConfiguration' }).then();
    given(created, deleted).when({ type: 'ReplaceConfiguration', settings }).refused('NOT_FOUND');
  });

  it('that never came to be is fenced off at no-stream', () => {
    given().when({ type: 'AbandonConfigurationCreation', ...place }).then({ type: 'ConfigurationCreationAbandoned', data: place });
    given(created).when({ type: 'AbandonConfigurationCreation', ...place }).then();
  });
});

describe('a document with a literal credential', () => {
  const pathsOf = (values: Record<string, unknown>): readonly string[] => {
    try {
      assertDocument(values);
      return [];
    } catch (error) {
      return (error as Refusal).details.map(({ path }) => path);
    }
  };

  it('is refused with a JSON Pointer to each field, whatever its name', () => {
    expect(pathsOf({ models: { providers: { 'a/b~c': { apiKey: 'sk-1', headers: { Authorization: 'Bearer x' } } } } })).toEqual([
      '/values/models/providers/a~1b~0c/apiKey',
      '/values/models/providers/a~1b~0c/headers/Authorization',
    ]);
    expect(pathsOf({ env: { 'CI/THE_API_KEY': 'sk-1', vars: { TOKEN: '${TOKEN}' } } })).toEqual(['/values/env/CI~1THE_API_KEY']);
  });

  it('is refused with a pointer that stays one when it is cut', () => {
    expect(pathsOf({ env: { [`x${'~'.repeat(300)}_API_KEY`]: 'sk-1' } })).toEqual([`/values/env/x${'~0'.repeat(249)}`]);
  });
});

/** The schema builder: its plugins, what every resolver is handed, and the permission a field may ask for. */
import SchemaBuilder from '@pothos/core';
import DataloaderPlugin from '@pothos/plugin-dataloader';
import ErrorsPlugin from '@pothos/plugin-errors';
import RelayPlugin from '@pothos/plugin-relay';
import ScopeAuthPlugin from '@pothos/plugin-scope-auth';
import type { Authorizer, Operation } from '../src/iam/authorizer.ts';
import type { Caller } from '../src/iam/caller.ts';
import type { Json } from '../src/kernel/canonical.ts';
import { Refusal } from '../src/kernel/errors.ts';
import type { HistoryFeed } from '../src/history/feed.ts';
import type { Watch } from '../src/runtime/watch.ts';
import type { Reads, Services } from '../src/services.ts';

/** One per request, and one per event of a subscription: loaders live as long as it does. */
export interface Context {
  readonly caller: Caller;
  /** Authenticates the same credentials again, for what is sent later. @throws Refusal UNAUTHENTICATED */
  readonly renewCaller: () => Promise<Caller>;
  readonly services: Services;
  readonly reads: Reads;
  readonly authorizer: Authorizer;
  /** What subscriptions wait for: an Agent and a deployment by their ids, and anything at all. */
  readonly watches: { readonly agents: Watch; readonly deployments: Watch; readonly history: HistoryFeed };
  /** Calls a listener again and again; the answer ends it. */
  readonly every: (ms: number, listener: () => void) => () => void;
  /** Aborted when the process drains: subscriptions complete. */
  readonly closing: AbortSignal;
  /** Told that a subscription has ended: a client that does not take what is left is disconnected. */
  readonly ended: () => void;
}

export const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  Scalars: {
    ID: { Input: string; Output: string };
    JSON: { Input: unknown; Output: Json | object };
    Timestamp: { Input: string; Output: string };
  };
  AuthScopes: { readonly reads: Operation };
}>({
  plugins: [ErrorsPlugin, ScopeAuthPlugin, RelayPlugin, DataloaderPlugin],
  defaultFieldNullability: false,
  errors: {
    directResult: true,
    defaultTypes: [Refusal],
    defaultUnionOptions: { name: ({ fieldName }) => `${fieldName.charAt(0).toUpperCase()}${fieldName.slice(1)}Result` },
  },
  relay: { clientMutationId: 'optional', nodeQueryOptions: false, nodesQueryOptions: false, nodesOnConnection: true },
  scopeAuth: {
    authScopes: ({ authorizer, caller }) => ({
      /** A field that crosses to another resource asks for `read` on it, as its own REST route would. (iam-auth-audit 8.4) */
      reads: async (operation) => {
        await authorizer.require(caller, operation, [['read', operation.resource]]);
        return true;
      },
    }),
  },
});

builder.queryType();
builder.mutationType();
builder.subscriptionType();

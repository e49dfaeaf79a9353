/** A subscriber over server-sent events. */
import { print } from 'graphql';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import type { Answer } from './world.ts';

export interface Subscription<Result> {
  readonly results: readonly Answer<Result>[];
  /** How many comments kept the connection alive. */
  readonly keepAlives: number;
  readonly ended: boolean;
  leave(): void;
}

/** Reads the stream of events in the background. */
export const openSubscription = async <Result, Variables>(endpoint: string, document: TypedDocumentNode<Result, Variables>, variables: Variables, headers: Record<string, string>): Promise<Subscription<Result>> => {
  const leaving = new AbortController();
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify({ query: print(document), variables }),
    signal: leaving.signal,
  });
  const seen = { results: [] as Answer<Result>[], keepAlives: 0, ended: false, leave: () => leaving.abort() };
  const read = async () => {
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const events = text.split('\n\n');
      text = events.pop()!;
      for (const event of events) {
        if (event === ':') seen.keepAlives++;
        if (/^event: complete$/m.test(event)) seen.ended = true;
        const data = /^event: next$/m.test(event) ? /^data: (.*)$/m.exec(event)?.[1] : undefined;
        if (data !== undefined && data !== '') seen.results.push(JSON.parse(data) as Answer<Result>);
      }
    }
    seen.ended = true;
  };
  read().catch(() => (seen.ended = true));
  return seen;
};

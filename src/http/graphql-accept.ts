/** Which form a GraphQL answer takes: what the client asks for among those there are, and never none. (architecture section 7) */

const forms: ReadonlySet<string> = new Set(['application/json', 'application/graphql-response+json', 'text/event-stream', 'application/*', 'text/*', '*/*']);

/** Graphql-yoga would answer 406 without a body once the operation has been executed: results are JSON for who accepts neither, subscriptions always streams. */
export const acceptOf = (accept = '*/*'): string => {
  const asked = accept.split(',').map((range) => range.split(';')[0]!.trim().toLowerCase());
  const known = asked.filter((range) => forms.has(range));
  return [...(known.length === 0 ? ['application/json'] : known), 'text/event-stream'].join(', ');
};

/** Whether what {@link acceptOf} gave leaves no form but a stream. */
export const takesStreamsOnly = (accept: string | null): boolean => accept !== null && !/application\/|\*\/\*/.test(accept);

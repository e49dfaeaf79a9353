/** The GraphiQL page of development: packaged with us, so that it asks no other host for anything. */
import type { OutgoingHttpHeaders } from 'node:http';

/** The browser holds the page to its own origin, whatever the package does. */
export const pageHeaders: OutgoingHttpHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    "connect-src 'self'",
    "script-src 'unsafe-inline' 'unsafe-eval' blob:",
    'worker-src blob:',
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
  ].join('; '),
};

/** Renders the page when it is first asked for: the package holds a whole editor. */
export const createPage = (endpoint: string): (() => Promise<string>) => {
  let page: Promise<string> | undefined;
  const render = async (): Promise<string> => {
    const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
    return renderGraphiQL({ endpoint, title: 'Exuvia', headers: JSON.stringify({ 'x-api-key': '' }), defaultQuery: '{ installation { name } namespaces { nodes { name status } } }\n' });
  };
  return () => (page ??= render());
};

/** A way to PostgreSQL that can lose answers, fall silent, or be cut: network faults on demand. */
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import pg from 'pg';

export interface TcpProxy {
  /** The given URL, by way of this proxy. */
  readonly url: string;
  /** Lets everything through (the default), or swallows what the server answers, or refuses connections. */
  behave(how: 'pass' | 'swallow answers' | 'refuse'): void;
  /** Leads every connection from now on to another server. */
  leadTo(targetUrl: string): void;
  /** Cuts every open connection. */
  cut(): void;
  /** Cuts the connection of the next answer the server gives, instead of delivering it. */
  loseNextAnswer(): Promise<void>;
  close(): Promise<void>;
}

export const startTcpProxy = async (targetUrl: string): Promise<TcpProxy> => {
  let target = new pg.Client(targetUrl);
  const sockets = new Set<Socket>();
  let behaviour: 'pass' | 'swallow answers' | 'refuse' = 'pass';
  let lose: (() => void) | undefined;

  const server = createServer((client) => {
    if (behaviour === 'refuse') {
      client.destroy();
      return;
    }
    const { host, port } = target;
    const upstream = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const [one, other] of [[client, upstream], [upstream, client]] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (answer) => {
      if (lose !== undefined) {
        lose();
        lose = undefined;
        client.destroy();
      } else if (behaviour === 'pass') client.write(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  const url = new URL(targetUrl.replace('@/', '@localhost/'));
  url.search = '';
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    behave(how) {
      behaviour = how;
    },
    leadTo(other) {
      target = new pg.Client(other);
    },
    cut,
    loseNextAnswer: () => new Promise((resolve) => (lose = resolve)),
    async close() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

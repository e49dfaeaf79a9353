/** An embedded server as a program of its own, until SIGTERM: `serve.ts <data folder> [<binaries>]` prints the connection string. */
import { startEmbedded } from '../../src/postgres/embedded.ts';

const [dataDir = '', binaries] = process.argv.slice(2);
try {
  const server = await startEmbedded({ dataDir, ...(binaries === undefined ? {} : { binaries }) });
  process.once('SIGTERM', () => void server.stop());
  console.log(server.url);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}

// DBOS on PostgreSQL, both with their defaults (fsync and synchronous_commit are on): a run is a workflow of N steps.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readdirSync } from 'node:fs';
import { callTool, freePorts, front, ready, require, until } from './tool.mjs';

const { DBOS } = require('@dbos-inc/dbos-sdk');
const pg = require('pg');

const versions = readdirSync('/usr/lib/postgresql').sort((a, b) => Number(b) - Number(a));
const bin = `/usr/lib/postgresql/${versions[0]}/bin`;
mkdirSync('data', { mode: 0o700 });
let owner = {};  // PostgreSQL refuses to run as root
if (process.getuid() === 0) {
  const id = (flag) => Number(spawnSync('id', [flag, 'postgres']).stdout);
  owner = { uid: id('-u'), gid: id('-g') };
  chmodSync('.', 0o711);
  chownSync('data', owner.uid, owner.gid);
}
const [port] = await freePorts(1);
const created = spawnSync(`${bin}/initdb`, ['-D', 'data', '-U', 'postgres', '--auth=trust'], { ...owner, stdio: ['ignore', 2, 2] });
if (created.status !== 0) process.exit(1);
const words = ['-D', 'data', '-p', String(port), '-h', '127.0.0.1', '-k', '', '-c', 'fsync=on', '-c', 'synchronous_commit=on'];
const postgres = spawn(`${bin}/postgres`, words, { ...owner, stdio: ['ignore', 2, 2] });
postgres.on('exit', (code) => process.exit(code ?? 1));
process.on('SIGTERM', () => postgres.kill('SIGINT'));

await until(async () => {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
  await client.connect();
  await client.end();
});

const workflow = DBOS.registerWorkflow(
  async (steps) => {
    for (let i = 1; i <= steps; ++i) {
      await DBOS.runStep(() => callTool(`${DBOS.workflowID}-s${i}`), { name: `s${i}` });
    }
    return { status: 'succeeded', steps };
  },
  { name: 'bench' },
);
DBOS.setConfig({
  name: 'bench',
  systemDatabaseUrl: `postgresql://postgres@127.0.0.1:${port}/bench_dbos_sys`,
  systemDatabasePoolSize: 20,
  logLevel: 'warn',
});
await DBOS.launch();

const run = async (steps) => (await DBOS.startWorkflow(workflow)(steps)).getResult();
await run(1);
ready(await front(run), '/run');

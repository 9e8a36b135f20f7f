// Restate, one node with its default settings: log on disk with fsync, and a service whose handler does N durable steps.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { callTool, freePorts, ready, require, until } from './tool.mjs';

process.env.RESTATE_LOGGING ??= 'WARN';  // a line per run is no part of the work
const restate = require('@restatedev/restate-sdk');

const [ingress, admin, node, service] = await freePorts(4);
writeFileSync(
  'restate.toml',
  `disable-telemetry = true
base-dir = "data"
bind-address = "127.0.0.1:${node}"
advertised-address = "http://127.0.0.1:${node}/"
listen-mode = "tcp"
[ingress]
bind-address = "127.0.0.1:${ingress}"
[admin]
bind-address = "127.0.0.1:${admin}"
disable-web-ui = true
[log-server]
rocksdb-disable-wal-fsync = false
[bifrost.local]
rocksdb-disable-wal-fsync = false
`,
);

const bench = restate.service({
  name: 'bench',
  handlers: {
    run: async (ctx, { steps }) => {
      for (let i = 1; i <= steps; ++i) await ctx.run(`s${i}`, () => callTool(`${ctx.request().id}-s${i}`));
      return { status: 'succeeded', steps };
    },
  },
});
await restate.serve({ services: [bench], port: service });

const server = spawn(require.resolve('@restatedev/restate-server-linux-x64/bin/restate-server'), ['--config-file', 'restate.toml', '--no-logo'], {
  stdio: ['ignore', 2, 2],
});
server.on('exit', (code) => process.exit(code ?? 1));
process.on('SIGTERM', () => server.kill('SIGKILL'));  // an orderly end takes five seconds, and the data goes away with it

await until(async () => {
  const answer = await fetch(`http://127.0.0.1:${admin}/deployments`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ uri: `http://127.0.0.1:${service}` }),
  });
  if (!answer.ok) throw new Error(await answer.text());
});
await until(async () => {
  const answer = await fetch(`http://127.0.0.1:${ingress}/bench/run`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"steps":1}',
  });
  if (!answer.ok) throw new Error(await answer.text());
});
ready(ingress, '/bench/run');

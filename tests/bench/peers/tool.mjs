// What every peer shares: the call of the tool, free ports, and how a peer says that it is ready.
import http from 'node:http';
import net from 'node:net';
import { createRequire } from 'node:module';

console.log = console.info = console.debug = console.error;  // standard output is for the ready line alone

/// The packages that scripts/bench_peers installed.
export const require = createRequire(process.env.BENCH_PEERS + '/package.json');

const agent = new http.Agent({ keepAlive: true, noDelay: true, maxSockets: 256 });
const body = JSON.stringify({ customer: 'c-1042', amount: 1299, memo: 'benchmark' });
const port = Number(process.env.BENCH_TOOL_PORT);

/// One step: the same POST that Holdfast sends, on a kept connection (node:http; fetch costs more CPU). Its JSON body.
export function callTool(key) {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length, 'Idempotency-Key': key };
    const request = http.request({ host: '127.0.0.1', port, path: '/do', method: 'POST', agent, headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (part) => (text += part));
      answer.on('end', () => (answer.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(text))));
    });
    request.on('error', reject);
    request.end(body);
  });
}

export async function freePorts(count) {
  const servers = [];
  for (let i = 0; i < count; ++i) {
    const server = net.createServer();
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    servers.push(server);
  }
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/// Until `attempt` succeeds: a server that was just started is asked until it answers.
export async function until(attempt, limitMs = 30000) {
  const end = Date.now() + limitMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

/// A plain HTTP front for peers that have none: POST with {"steps": N} answers when `run(N)` has.
export function front(run) {
  const server = http.createServer({ noDelay: true }, (request, answer) => {
    let text = '';
    request.on('data', (part) => (text += part));
    request.on('end', async () => {
      let status = 200;
      let result;
      try {
        result = JSON.stringify(await run(JSON.parse(text).steps));
      } catch (error) {
        [status, result] = [500, JSON.stringify({ status: 'failed', error: String(error) })];
      }
      answer.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(result) });
      answer.end(result);
    });
  });
  server.keepAliveTimeout = 120000;
  return new Promise((done) => server.listen(0, '127.0.0.1', 4096, () => done(server.address().port)));
}

export const ready = (port, path) => process.stdout.write(`ready port=${port} path=${path}\n`);

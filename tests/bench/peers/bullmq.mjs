// BullMQ on Redis whose append-only file is synced before every answer. A run is a job; its worker does N steps after
// the documented pattern for step jobs: what the steps gave and which one is next is stored in the job's data between
// any two steps, and the last step's result with the job's end.
import { spawn } from 'node:child_process';
import { callTool, freePorts, front, ready, require } from './tool.mjs';

const { Queue, QueueEvents, Worker } = require('bullmq');

const [port] = await freePorts(1);
const settings = { port, bind: '127.0.0.1', appendonly: 'yes', appendfsync: 'always', save: '', 'maxmemory-policy': 'noeviction' };
const words = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
// Debian's redis-tools holds the server too, under a name that makes it a checker.
const redis = spawn('redis-check-rdb', words, { argv0: 'redis-server', stdio: ['ignore', 2, 2] });
redis.on('exit', (code) => process.exit(code ?? 1));
process.on('SIGTERM', () => redis.kill('SIGTERM'));

const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
const queue = new Queue('bench', { connection });
const events = new QueueEvents('bench', { connection });
events.setMaxListeners(0);
new Worker(
  'bench',
  async (job) => {
    const { steps, results } = job.data;
    while (results.length < steps) {
      results.push(await callTool(`${job.id}-s${results.length + 1}`));
      if (results.length < steps) await job.updateData({ steps, results });
    }
    return { status: 'succeeded', results };
  },
  { connection, concurrency: 256 },
);
await queue.waitUntilReady();
await events.waitUntilReady();

const run = async (steps) => (await queue.add('run', { steps, results: [] })).waitUntilFinished(events);
await run(1);
ready(await front(run), '/run');

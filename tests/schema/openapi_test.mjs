// Every operation and every example of schema/openapi.yaml against the built binary; every answer against its schema.
// Usage: node openapi_test.mjs BINARY
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import {tmpdir} from 'node:os';
import {join, resolve as absolute} from 'node:path';
import {test, before, after} from 'node:test';
import {parse, root, validator} from './tools.mjs';

const binary = absolute(process.argv[2]);
const api = parse('schema/openapi.yaml');
const folder = mkdtempSync(join(tmpdir(), 'holdfast-schema-'));
const ajv = validator();

/// Objects of the answers may hold what the schema names and nothing else, so that a member that only one of both has is found.
function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (schema === null || typeof schema !== 'object') return schema;
  const out = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  if (out.type === 'object' && out.properties && !('additionalProperties' in out)) out.additionalProperties = false;
  return out;
}
ajv.addSchema({...api, components: {...api.components, schemas: closed(api.components.schemas)}}, 'openapi');

const resolve = (object) => (object?.$ref ? object.$ref.slice(2).split('/').reduce((at, name) => at[name], api) : object);
const operations = new Map();
for (const [path, item] of Object.entries(api.paths))
  for (const method of ['get', 'post'])
    if (item[method]) operations.set(item[method].operationId, {path, method: method.toUpperCase(), operation: item[method]});
const validators = new Map();
const called = new Set();
const examplesRun = new Set();

function check(schema, value, what) {
  const key = JSON.stringify(schema);
  if (!validators.has(key)) validators.set(key, ajv.compile(JSON.parse(key.replaceAll('"#/', '"openapi#/'))));
  const validate = validators.get(key);
  assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`);
}

let product, ports, tools;

before(async () => {
  tools = http.createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => (body += piece));
    request.on('end', () => {
      if (request.url === '/charge' && !body.includes('"answer"')) return request.socket.destroy();  // done, and the answer is lost
      response.setHeader('Content-Type', 'application/json').end('{"total": 2, "id": 77}');
    });
  });
  await new Promise((ready) => tools.listen(0, '127.0.0.1', ready));
  const url = `http://127.0.0.1:${tools.address().port}`;
  writeFileSync(join(folder, 'holdfast.yaml'), JSON.stringify({
    listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', database: 'holdfast.db',
    servers: {
      crm: {http: {base_url: url}, tools: {
        search: {effect: 'read', request: {method: 'GET', path: '/search'}},
        post_note: {effect: 'write', request: {method: 'POST', path: '/notes'}, key: {header: 'Idempotency-Key'}}}},
      billing: {http: {base_url: url}, tools: {charge: {effect: 'write', request: {method: 'POST', path: '/charge'}}}}}}));
  product = spawn(binary, ['serve', '--config', 'holdfast.yaml'], {cwd: folder, stdio: ['ignore', 'pipe', 'ignore']});
  ports = await new Promise((ready, failed) => {
    product.stdout.on('data', (line) => {
      const found = /client=\S+:(\d+) admin=\S+:(\d+)/.exec(line);
      if (found) ready({client: found[1], admin: found[2]});
    });
    product.on('error', failed);
    product.on('exit', () => failed(new Error('the server ended before it was ready')));
  });
});

after(() => {
  product?.kill('SIGKILL');
  tools?.close();
  rmSync(folder, {recursive: true});
});

/// Calls an operation and checks the answer against the schema of its status. `at`: path parameters.
async function call(id, {at = {}, query = '', body, headers = {}, status = 200, listener} = {}) {
  const {path, method, operation} = operations.get(id);
  const place = path.replace(/\{(\w+)\}/g, (_, name) => at[name]);
  assert.ok(!place.includes('undefined'), place);
  const port = ports[listener ?? (operation.tags.includes('operator') ? 'admin' : 'client')];
  const sent = body === undefined ? {} : {body: typeof body === 'string' ? body : JSON.stringify(body), headers: {'Content-Type': 'application/json', ...headers}};
  const answer = await fetch(`http://127.0.0.1:${port}${place}${query}`, {method, headers, ...sent});
  const bytes = await answer.text();
  const what = `${id} ${method} ${place}${query} ${answer.status}`;
  assert.equal(answer.status, status, `${what}: ${bytes}`);
  const described = resolve(operation.responses[String(answer.status)] ?? operation.responses.default);
  assert.ok(described, `${what} is not described`);
  for (const [name, header] of Object.entries(described.headers ?? {})) check(header.schema, answer.headers.get(name), `${what} ${name}`);
  if (answer.status < 300) called.add(id);
  if (!described.content) return {answer};
  const type = answer.headers.get('content-type').split(';')[0];
  const content = described.content[type];
  assert.ok(content, `${what}: ${type} is not described`);
  const value = type.endsWith('json') ? JSON.parse(bytes) : bytes;
  check(content.schema, value, what);
  if (type === 'application/problem+json') {
    assert.equal(value.type, `/errors/${value.code}`);
    const page = await fetch(new URL(value.type, answer.url));
    assert.equal(page.status, 200, value.type);
    assert.equal(await page.text(), readFileSync(join(root, 'docs', 'errors', `${value.code}.md`), 'utf8'));
  }
  return {answer, value};
}

/// A request body of the document, by name.
function example(id, name) {
  const body = resolve(operations.get(id).operation.requestBody);
  examplesRun.add(`${id} ${name}`);
  return structuredClone(body.content['application/json'].examples[name].value);
}

const submit = async (name, key) => (await call('submitRun', {body: example('submitRun', name), headers: key ? {'Idempotency-Key': key} : {}, status: 201})).value;
const rest = async (run) => (await call('getRun', {at: {run: run.id}, query: '?wait=20s'})).value;

test('health', async () => {
  for (const listener of ['client', 'admin']) {
    await call('health', {listener});
    await call('readiness', {listener});
  }
});

test('pages about errors', async () => {
  for (const listener of ['client', 'admin']) await call('errorPage', {listener, at: {code: 'key_reused'}});
});

test('a plan, its repetition, and what can be read of it', async () => {
  const run = await submit('plan', 'night-1');
  const again = await call('submitRun', {body: example('submitRun', 'plan'), headers: {'Idempotency-Key': 'night-1'}});
  assert.equal(again.value.id, run.id);
  await call('submitRun', {body: example('submitRun', 'open'), headers: {'Idempotency-Key': 'night-1'}, status: 422});
  const settled = await rest(run);
  assert.equal(settled.status, 'succeeded', JSON.stringify(settled));
  await call('listRuns', {query: '?status=succeeded&name=nightly-triage&label=team:ops&limit=1'});
  await call('listRuns', {listener: 'admin'});
  await call('listRuns', {query: '?cursor=none', status: 400});
  await call('listAttempts', {at: {run: run.id}});
  const {value: {events, next}} = await call('listEvents', {at: {run: run.id}});
  const {value: stream} = await call('listEvents', {at: {run: run.id}, headers: {Accept: 'text/event-stream'}});
  const streamed = [...stream.matchAll(/^data: ?(.*)$/gm)].map((line) => JSON.parse(line[1]));
  assert.deepEqual(streamed, events);
  assert.equal(next, events.at(-1).seq);
  await call('getStep', {at: {run: run.id, step: 'note'}, query: '?wait=1s'});
  await call('addStep', {at: {run: run.id}, body: example('addStep', 'step'), status: 409});
  await call('cancelRun', {at: {run: run.id}, body: example('cancelRun', 'reason')});
});

test('open runs', async () => {
  const run = await submit('open');
  const at = {run: run.id};
  await call('addStep', {at, query: '?wait=20s', body: example('addStep', 'step'), status: 201});
  const cut = {...example('addStep', 'step'), id: 'cut', max_attempts: 99};
  for (const status of [201, 200]) {
    const {value: {warnings}} = await call('addStep', {at, body: cut, status});
    assert.deepEqual(warnings, ['step "cut": its max_attempts is higher than the tool\'s and is cut to 3']);
    assert.deepEqual((await call('getRun', {at})).value.warnings, warnings);
  }
  await call('addStep', {at, body: example('addStep', 'step')});
  await call('addStep', {at, body: {...example('addStep', 'step'), args: {}}, status: 422});
  await call('addStep', {at, body: {id: 'two', server: 'crm', tool: 'no_such_tool'}, status: 400});
  await call('finishRun', {at, body: example('finishRun', 'done')});
  await call('finishRun', {at, body: example('finishRun', 'given_up'), status: 409});
  const other = await submit('open');
  await call('finishRun', {at: {run: other.id}, body: example('finishRun', 'given_up')});
  const third = await submit('open');
  const {value} = await call('cancelRun', {at: {run: third.id}, body: example('cancelRun', 'reason')});
  assert.equal(value.status, 'cancelled');
});

test('writes in doubt', async () => {
  for (const verdict of ['landed', 'not_landed', 'abandon']) {
    const run = await rest(await submit('in_doubt'));
    assert.equal(run.status, 'unknown', JSON.stringify(run));
    const write = run.steps[0].write.id;
    await call('listUnknowns', {query: '?state=open&server=billing&tool=charge&limit=5'});
    await call('getUnknown', {at: {write}});
    await call('resolveUnknown', {at: {write}, body: {...example('resolveUnknown', verdict), note: ''}, status: 400});
    await call('resolveUnknown', {at: {write}, body: example('resolveUnknown', verdict)});
    await call('listAttempts', {at: {run: run.id}});
    if (verdict !== 'landed') continue;
    await call('resolveUnknown', {at: {write}, body: example('resolveUnknown', 'abandon'), status: 409});
  }
  await call('listUnknowns', {query: '?state=all'});
});

test('operators', async () => {
  const at = {server: 'crm', tool: 'search'};
  await call('openServerBreaker', {at, body: example('openServerBreaker', 'hold')});
  await call('openToolBreaker', {at, body: example('openToolBreaker', 'hold')});
  await call('listBreakers');
  await call('closeServerBreaker', {at, body: example('closeServerBreaker', 'mended')});
  await call('closeToolBreaker', {at, body: example('closeToolBreaker', 'mended')});
  for (const id of ['openServerBreaker', 'openToolBreaker', 'closeServerBreaker', 'closeToolBreaker']) {
    await call(id, {at: {server: 'none', tool: 'none'}, body: {reason: 'x'}, status: 404});
    await call(id, {at, body: {}, status: 400});
  }
  await call('listTools', {query: '?limit=2'});
  await call('listAudit');
  const copy = {...example('backup', 'daily'), path: join(folder, 'copy.db')};
  await call('backup', {body: copy});
  await call('backup', {body: copy, status: 409});
  const {value: metrics} = await call('metrics');
  const names = new Set([...metrics.matchAll(/^# TYPE (\S+)/gm)].map((line) => line[1]));
  assert.ok(names.size > 10);
  for (const name of names) assert.ok(operations.get('metrics').operation['x-metrics'].includes(name), name);
});

test('what is refused', async () => {
  const nowhere = {run: 'run_00000000000000000000000000', step: 'none', write: 'none', server: 'none', tool: 'none', code: 'none'};
  const somewhere = {run: (await submit('open')).id, write: (await rest(await submit('in_doubt'))).steps[0].write.id, server: 'crm', tool: 'search'};
  for (const [id, {path, operation}] of operations) {
    const body = resolve(operation.requestBody)?.content['application/json'];
    const good = body && Object.values(body.examples)[0].value;
    if (path.includes('{')) await call(id, {at: nowhere, body: good, status: 404});
    if (!body) continue;
    for (const bad of ['{', '[]', {...good, no_such_member: 1}]) await call(id, {at: somewhere, body: bad, status: 400});
  }
});

test('nothing of the document was left out', () => {
  assert.deepEqual([...operations.keys()].filter((id) => !called.has(id)), []);
  const all = [...operations].flatMap(([id, {operation}]) =>
    Object.keys(resolve(operation.requestBody)?.content['application/json'].examples ?? {}).map((name) => `${id} ${name}`));
  assert.deepEqual(all.filter((name) => !examplesRun.has(name)), []);
  for (const [id, {operation}] of operations)
    if (operation.requestBody) assert.ok(all.some((name) => name.startsWith(`${id} `)), `${id} has a body and no example`);
});

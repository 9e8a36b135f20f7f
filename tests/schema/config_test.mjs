// schema/config.schema.json against `holdfast check`: both accept the same examples, and both know the same fields at every place.
// Usage: node config_test.mjs BINARY
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve as absolute} from 'node:path';
import {after, test} from 'node:test';
import {parse, root, text, validator, yaml} from './tools.mjs';

const binary = absolute(process.argv[2]);
const schema = parse('schema/config.schema.json');
const validate = validator().compile(schema);
const folder = mkdtempSync(join(tmpdir(), 'holdfast-config-'));
after(() => rmSync(folder, {recursive: true}));

// Whatever an example takes from the environment: a URL where it needs one, else some text.
const environment = {};

/// What `holdfast check` says of a configuration: '' or its complaint.
function check(config) {
  writeFileSync(join(folder, 'holdfast.yaml'), JSON.stringify(config));
  writeFileSync(join(folder, 'mcp.json'), '{"mcpServers": {"files": {"command": "cat"}}}');
  const run = spawnSync(binary, ['check', 'holdfast.yaml'], {cwd: folder, encoding: 'utf8', env: {...process.env, ...environment}});
  assert.ok([0, 2].includes(run.status), run.stderr);
  return run.status === 0 ? '' : run.stderr;
}

/// Every configuration of the documents, the example, the package and the scenarios, by the place it stands at.
function examples() {
  const found = new Map();
  const add = (place, source) => {
    for (const [, name] of source.matchAll(/\$\{env:(\w+)\}/g)) environment[name] = name.endsWith('URL') ? 'http://127.0.0.1:9' : 'some-text';
    found.set(place, yaml.parse(source));
  };
  add('scripts/example', text('scripts/example/holdfast.yaml').replaceAll(/@\w+PORT@/g, '9'));
  add('packaging', text('packaging/debian/holdfast.yaml'));
  let n = 0;
  for (const [, block] of text('docs/configuration.md').matchAll(/```yaml\n([\s\S]*?)```/g)) {
    add('', block);
    // A block that shows tools stands in servers: those with a request in a plain HTTP one.
    const value = yaml.parse(block.replaceAll('<64 hexadecimal digits>', 'a'.repeat(64)));
    const tools = (pick) => Object.fromEntries(Object.entries(value.tools).filter(([, tool]) => Boolean(tool?.request) === pick));
    const whole = !value.tools ? value : {servers: {
      billing: {http: {base_url: 'http://127.0.0.1:9'}, tools: tools(true)}, crm: {mcp: {url: 'http://127.0.0.1:9/mcp'}, tools: tools(false)}}};
    found.set(`docs/configuration.md, block ${++n}`, whole);
  }
  found.delete('');
  let digests = 0;
  for (const [, config] of found)
    for (const token of config?.auth?.tokens ?? []) token.sha256 = String(++digests).padStart(64, '0');
  const read = `
import glob, json, os, sys
sys.path.insert(0, 'tests/scenario')
import scenario_file
print(json.dumps([[path, name, made.config] for path in sorted(glob.glob('tests/scenario/*.scenario')) for name, made in scenario_file.parse(path)]))`;
  const scenarios = spawnSync('python3', ['-B', '-c', read], {cwd: root, encoding: 'utf8', maxBuffer: 1 << 26});
  assert.equal(scenarios.status, 0, scenarios.stderr);
  for (const [path, variant, config] of JSON.parse(scenarios.stdout))
    if (config) add(`${path} ${variant}`, config.replaceAll(/@(\w+)@/g, 'http://127.0.0.1:9'));
  return found;
}

test('every example configuration is accepted by both', () => {
  const all = examples();
  assert.ok(all.size > 20, `${all.size} examples`);
  for (const [place, config] of all) {
    assert.ok(validate(config ?? {}), `${place}: ${JSON.stringify(validate.errors, null, 1)}`);
    const complaint = check(config ?? {});
    assert.equal(complaint, '', place);
  }
});

// A valid configuration with every section that has fields, so that each place can be given an unknown one.
const whole = {
  listen: '127.0.0.1:0', auth: {tokens: [{name: 'a', scope: 'client', sha256: 'a'.repeat(64)}]}, limits: {json_depth: 64},
  defaults: {backoff: {base: '1s'}, retry_budget: 1},
  servers: {
    web: {
      http: {base_url: 'http://127.0.0.1:9'}, probe: {tool: 'ask'}, backoff: {base: '1s'}, breaker: {enabled: true},
      tools: {
        ask: {effect: 'read', request: {method: 'GET', path: '/a'}, fallback: {cached: {max_age: '1h'}}},
        other: {effect: 'read', request: {method: 'GET', path: '/b'}, fallback: {tool: {tool: 'ask'}}},
        pay: {request: {method: 'POST', path: '/p'}, key: {header: 'K'}, success: {pointer: '/ok', equals: true}, errors: {business: ['no']},
          backoff: {base: '1s'}, breaker: {enabled: true}},
        note: {request: {method: 'POST', path: '/n'}, check: {tool: 'ask', found: {pointer: '/n', not: 0}}}}},
    remote: {mcp: {url: 'http://127.0.0.1:9/mcp'}},
    local: {mcp: {command: ['cat']}}}};

/// Every map of `whole` whose members are fields, with the schema that describes it.
function* places(value, at, pointer = []) {
  at = at.$ref ? at.$ref.slice(2).split('/').reduce((from, name) => from[name], schema) : at;
  if (at.oneOf && !at.properties) {
    const kinds = at.oneOf.map((one) => (one.$ref ? one.$ref.slice(2).split('/').reduce((from, name) => from[name], schema) : one))
      .filter((one) => one.type === (Array.isArray(value) ? 'array' : typeof value));
    at = kinds.length > 1 ? {additionalProperties: false, properties: Object.assign({}, ...kinds.map((one) => one.properties))} : kinds[0];
  }
  if (!at || value === null || typeof value !== 'object') return;
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) yield* places(item, at.items ?? {}, [...pointer, i]);
    return;
  }
  if (at.additionalProperties === false) yield {pointer, fields: Object.keys(at.properties)};
  for (const [name, member] of Object.entries(value)) yield* places(member, at.properties?.[name] ?? (at.additionalProperties || {}), [...pointer, name]);
}

test('an unknown field is refused by both at every place, and both know the same fields there', () => {
  assert.equal(check(whole), '');
  assert.ok(validate(whole));
  const seen = [];
  for (const {pointer, fields} of places(whole, schema)) {
    const config = structuredClone(whole);
    pointer.reduce((at, name) => at[name], config)['zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz'] = 1;
    const place = `/${pointer.join('/')}`;
    assert.ok(!validate(config), `the schema accepts an unknown field in ${place}`);
    const complaint = check(config);
    const known = /unknown field `z+`; known here: (.*)/.exec(complaint);
    assert.ok(known, `${place}: ${complaint || 'check accepts it'}`);
    assert.deepEqual(new Set(known[1].trim().split(', ')), new Set(fields), place);
    seen.push(place);
  }
  for (const place of ['/', '/auth', '/auth/tokens/0', '/limits', '/defaults/backoff', '/servers/web/tools/pay/key', '/servers/web/tools/note/check/found',
    '/servers/remote/mcp', '/servers/local/mcp', '/servers/web/tools/ask/fallback/cached', '/servers/web/breaker'])
    assert.ok(seen.includes(place), `${place} was not looked at: ${seen}`);
});

test('values that check refuses are refused by the schema too', () => {
  const bad = [{retention: 0}, {retention: '0d'}, {retention: '-1d'}, {retention: '1.5d'}, {shutdown_grace: 'soon'}, {listen: ''}, {limits: {json_depth: 0}}, {limits: {json_depth: 513}},
    {limits: {connections: '10'}}, {defaults: {max_attempts: 0}}, {defaults: {retry_budget: -1}}, {servers: {'a b': {}}}, {servers: []}, {auth: {tokens: [{name: 'a'}]}},
    {auth: {tokens: [{name: 'a', scope: 'root', sha256: 'a'.repeat(64)}]}}, {servers: {a: {http: {base_url: 'ftp://x'}}}}, {servers: {a: {http: {base_url: 'http://x'}, mcp: {url: 'http://x'}}}}];
  for (const config of bad) {
    assert.notEqual(check(config), '', JSON.stringify(config));
    assert.ok(!validate(config), `the schema accepts ${JSON.stringify(config)}`);
  }
});

// What both tests share: the validators, and the places of things.
import {createRequire} from 'node:module';
import {readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const require = createRequire(join(root, 'build', 'schema_tools', 'package.json'));
const Ajv = require('ajv/dist/2020').default;
export const yaml = require('yaml');
export const text = (path) => readFileSync(join(root, path), 'utf8');
export const parse = (path) => yaml.parse(text(path));

export function validator() {
  const ajv = new Ajv({strict: false, allErrors: true});
  require('ajv-formats').default(ajv);
  return ajv;
}

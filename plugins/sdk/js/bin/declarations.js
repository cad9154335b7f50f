// Generates contract.d.ts from the contract's WIT: `node bin/declarations.js ../../../wit/v1 >
// contract.d.ts`.

import { fileURLToPath } from 'node:url';

import { contract } from './wit.js';

const PLAIN = { string: 'string', bool: 'boolean', u8: 'number', u16: 'number', u32: 'number', u64: 'number' };

const pascal = (name) => name.replace(/(^|-)([a-z0-9])/g, (_, _dash, char) => char.toUpperCase());
const camel = (name) => name.replace(/-([a-z0-9])/g, (_, char) => char.toUpperCase());

/** Returns a type in TypeScript. A `result` is its success type, because the fault is thrown. */
function typescript({ name, of }) {
  if (of.length === 0) return PLAIN[name] ?? pascal(name);
  const inner = of.map(typescript);
  if (name === 'option') return `${inner[0]} | null`;
  if (name === 'tuple') return `[${inner.join(', ')}]`;
  if (name === 'list') return of[0].name === 'u8' ? 'Uint8Array' : `${inner[0]}[]`;
  if (name === 'result') return inner[0];
  throw new Error(`unknown type ${name}`);
}

const comment = (docs, indent = '') => {
  if (docs.length === 0) return '';
  if (docs.length === 1) return `${indent}/** ${docs[0]} */\n`;
  return [`${indent}/**`, ...docs.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */`, ''].join('\n');
};

function field({ docs, name, type }) {
  const text = typescript(type);
  return `${comment(docs, '  ')}  ${camel(name)}${text.endsWith('| null') ? '?' : ''}: ${text};\n`;
}

const taggedCase = ({ name, type }) => (type ? `{ tag: '${name}'; val: ${typescript(type)} }` : `{ tag: '${name}' }`);

const alternative = (of) => (part) => `${comment(part.docs, '  ')}  | ${of(part)}`;

function declaration({ kind, docs, name, parts }) {
  const head = comment(docs);
  if (kind === 'record') return `${head}export interface ${pascal(name)} {\n${parts.map(field).join('')}}\n`;
  const text = kind === 'enum' ? (part) => `'${part.name}'` : taggedCase;
  return `${head}export type ${pascal(name)} =\n${parts.map(alternative(text)).join('\n')};\n`;
}

function method({ name, docs, parameters, result }) {
  const taken = parameters.map((each) => `${camel(each.name)}: ${typescript(each.type)}`);
  const error = result?.name === 'result' && result.of[1];
  const lines = error ? [...docs, `@throws {${typescript(error)}}`] : docs;
  return `${comment(lines, '  ')}  ${camel(name)}(${taken.join(', ')}): ${result ? typescript(result) : 'void'};\n`;
}

/** Returns the declarations of all interfaces in a folder of WIT. */
export function declarations(folder) {
  const found = ['// Generated from the contract\'s WIT by bin/declarations.js.\n'];
  for (const { name, docs, types, functions } of contract(folder).interfaces) {
    found.push(...types.map(declaration));
    if (functions.length === 0) continue;
    found.push(`${comment(docs)}export interface ${pascal(name)} {\n${functions.map(method).join('')}}\n`);
  }
  return found.join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(declarations(process.argv[2]));

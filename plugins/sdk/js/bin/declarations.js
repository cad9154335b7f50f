// Generates contract.d.ts from the contract's WIT: `node bin/declarations.js ../../../wit/v1 >
// contract.d.ts`.

import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const TOKENS = /\/\/\/ ?.*|\/\/.*|->|[a-z0-9-]+|[^\s]/g;
const PLAIN = { string: 'string', bool: 'boolean', u8: 'number', u16: 'number', u32: 'number', u64: 'number' };

const pascal = (name) => name.replace(/(^|-)([a-z0-9])/g, (_, _dash, char) => char.toUpperCase());
const camel = (name) => name.replace(/-([a-z0-9])/g, (_, char) => char.toUpperCase());

/** Parses the subset of WIT that the contract uses; anything else is an error. */
class Reader {
  constructor(text) {
    this.tokens = text.match(TOKENS).filter((token) => !/^\/\/(?!\/)/.test(token));
    this.at = 0;
  }

  next(...expected) {
    const token = this.tokens[this.at++];
    if (expected.length && !expected.includes(token)) throw new Error(`expected ${expected}, found ${token}`);
    return token;
  }

  /** Skips to the token after the next one of this kind. */
  past(token) {
    while (this.next() !== token);
  }

  docs() {
    const lines = [];
    while (this.tokens[this.at]?.startsWith('///')) lines.push(this.next().replace(/^\/\/\/ ?/, ''));
    return lines;
  }

  /** Parses a list of items with their doc comments, up to `end`. */
  list(end, item) {
    const found = [];
    for (;;) {
      const docs = this.docs();
      if (this.tokens[this.at] === end) break;
      found.push({ docs, ...item() });
      if (this.tokens[this.at] === ',') this.next();
    }
    this.next(end);
    return found;
  }

  type() {
    const name = this.next();
    if (this.tokens[this.at] !== '<') return PLAIN[name] ?? pascal(name);
    this.next('<');
    const inner = this.list('>', () => ({ type: this.type() })).map(({ type }) => type);
    if (name === 'option') return `${inner[0]} | null`;
    if (name === 'tuple') return `[${inner.join(', ')}]`;
    if (name === 'list') return inner[0] === 'number' ? 'Uint8Array' : `${inner[0]}[]`;
    if (name === 'result') return inner;
    throw new Error(`unknown type ${name}`);
  }

  field() {
    const name = camel(this.next());
    this.next(':');
    return { name, type: this.type() };
  }
}

const comment = (docs, indent = '') => {
  if (docs.length === 0) return '';
  if (docs.length === 1) return `${indent}/** ${docs[0]} */\n`;
  return [`${indent}/**`, ...docs.map((line) => `${indent} * ${line}`), `${indent} */`, ''].join('\n');
};
const field = ({ docs, name, type }) => `${comment(docs, '  ')}  ${name}${type.endsWith('| null') ? '?' : ''}: ${type};\n`;

const DECLARE = {
  record(reader) {
    const name = pascal(reader.next());
    reader.next('{');
    return `export interface ${name} {\n${reader.list('}', () => reader.field()).map(field).join('')}}\n`;
  },
  enum(reader) {
    const name = pascal(reader.next());
    reader.next('{');
    const cases = reader.list('}', () => ({ name: reader.next() }));
    return `export type ${name} =\n${cases.map(({ docs, name }) => `${comment(docs, '  ')}  | '${name}'`).join('\n')};\n`;
  },
  variant(reader) {
    const name = pascal(reader.next());
    reader.next('{');
    const cases = reader.list('}', () => {
      const tag = reader.next();
      if (reader.tokens[reader.at] !== '(') return { text: `{ tag: '${tag}' }` };
      reader.next('(');
      const text = `{ tag: '${tag}'; val: ${reader.type()} }`;
      reader.next(')');
      return { text };
    });
    return `export type ${name} = ${cases.map(({ text }) => text).join(' | ')};\n`;
  },
};

function method(reader, name, docs) {
  for (const token of [':', 'func', '(']) reader.next(token);
  const parameters = reader.list(')', () => reader.field()).map((each) => `${each.name}: ${each.type}`);
  let type = 'void';
  if (reader.next('->', ';') === '->') {
    type = reader.type();
    reader.next(';');
  }
  const [result, error] = Array.isArray(type) ? type : [type];
  const lines = error ? [...docs, `@throws {${error}}`] : docs;
  return `${comment(lines, '  ')}  ${camel(name)}(${parameters.join(', ')}): ${result};\n`;
}

/**
 * Parses an interface of the contract; returns its types, and its functions as a TypeScript
 * interface.
 */
function contract(reader, docs) {
  const name = pascal(reader.next());
  const [types, methods] = [[], []];
  reader.next('{');
  for (;;) {
    const docs = reader.docs();
    const word = reader.next();
    if (word === '}') break;
    if (word === 'use') reader.past(';');
    else if (word in DECLARE) types.push(comment(docs) + DECLARE[word](reader));
    else methods.push(method(reader, word, docs));
  }
  if (methods.length) types.push(`${comment(docs)}export interface ${name} {\n${methods.join('')}}\n`);
  return types;
}

/** Returns the declarations of all interfaces in a folder of WIT. */
export function declarations(folder) {
  const found = ['// Generated from the contract\'s WIT by bin/declarations.js.\n'];
  for (const file of readdirSync(folder).sort()) {
    const reader = new Reader(readFileSync(`${folder}/${file}`, 'utf8'));
    while (reader.at < reader.tokens.length) {
      const docs = reader.docs();
      const word = reader.next('package', 'interface', 'world', undefined);
      if (word === 'package') reader.past(';');
      else if (word === 'world') reader.past('}');
      else if (word === 'interface') found.push(...contract(reader, docs));
    }
  }
  return found.join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(declarations(process.argv[2]));

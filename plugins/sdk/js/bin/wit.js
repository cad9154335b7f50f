// Parses the contract's WIT, for programs that generate files from it.

import { readFileSync, readdirSync } from 'node:fs';

const TOKENS = /\/\/\/ ?.*|\/\/.*|->|%?[a-z0-9-]+|[^\s]/g;

/** Parses the subset of WIT that the contract uses; anything else is an error. */
class Reader {
  constructor(text) {
    this.tokens = text.match(TOKENS).filter((token) => !/^\/\/(?!\/)/.test(token));
    this.at = 0;
  }

  peek() {
    return this.tokens[this.at];
  }

  next(...expected) {
    const token = this.tokens[this.at++];
    if (expected.length && !expected.includes(token)) throw new Error(`expected ${expected}, found ${token}`);
    return token;
  }

  /** Returns a name without the `%` that escapes a keyword. */
  name() {
    return this.next().replace(/^%/, '');
  }

  /** Skips to the token after the next one of this kind. */
  past(token) {
    while (this.next() !== token);
  }

  docs() {
    const lines = [];
    while (this.peek()?.startsWith('///')) lines.push(this.next().replace(/^\/\/\/ ?/, ''));
    return lines;
  }

  /** Parses a list of items with their doc comments, up to `end`. */
  list(end, item) {
    const found = [];
    for (;;) {
      const docs = this.docs();
      if (this.peek() === end) break;
      found.push({ docs, ...item() });
      if (this.peek() === ',') this.next();
    }
    this.next(end);
    return found;
  }

  /** Parses a type: its name, and the types in angle brackets. */
  type() {
    const name = this.name();
    if (this.peek() !== '<') return { name, of: [] };
    this.next('<');
    return { name, of: this.list('>', () => ({ type: this.type() })).map(({ type }) => type) };
  }

  field() {
    const name = this.name();
    this.next(':');
    return { name, type: this.type() };
  }

  case() {
    const name = this.name();
    if (this.peek() !== '(') return { name };
    this.next('(');
    const type = this.type();
    this.next(')');
    return { name, type };
  }

  function() {
    for (const token of [':', 'func', '(']) this.next(token);
    const parameters = this.list(')', () => this.field());
    if (this.next('->', ';') === ';') return { parameters };
    const result = this.type();
    this.next(';');
    return { parameters, result };
  }

  interface() {
    const name = this.next();
    const [types, functions] = [[], []];
    this.next('{');
    for (;;) {
      const docs = this.docs();
      const word = this.next();
      if (word === '}') return { name, types, functions };
      if (word === 'use') {
        this.past(';');
      } else if (['record', 'enum', 'variant'].includes(word)) {
        const type = { kind: word, docs, name: this.name() };
        this.next('{');
        types.push({ ...type, parts: this.list('}', () => (word === 'record' ? this.field() : this.case())) });
      } else {
        functions.push({ name: word.replace(/^%/, ''), docs, ...this.function() });
      }
    }
  }

  world() {
    const world = { name: this.next(), include: [], import: [], export: [] };
    this.next('{');
    for (;;) {
      const word = this.next('include', 'import', 'export', '}');
      if (word === '}') return world;
      world[word].push(this.next());
      this.next(';');
    }
  }
}

/**
 * Returns the contract in a folder: the doc comment of the package, and the interfaces and worlds
 * in alphabetical order of their files.
 */
export function contract(folder) {
  const found = { docs: [], interfaces: [], worlds: [] };
  for (const file of readdirSync(folder).sort()) {
    const reader = new Reader(readFileSync(`${folder}/${file}`, 'utf8'));
    while (reader.peek() !== undefined) {
      const docs = reader.docs();
      const word = reader.next('package', 'interface', 'world');
      if (word === 'package') {
        found.docs.push(...docs);
        reader.past(';');
      } else if (word === 'interface') {
        found.interfaces.push({ file, docs, ...reader.interface() });
      } else {
        found.worlds.push({ docs, ...reader.world() });
      }
    }
  }
  return found;
}

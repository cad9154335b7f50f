// Generates docs/plugins/reference from the contract's WIT and from the documentation of the SDKs:
// `node plugins/sdk/reference.mjs`. The readers know the subset of each language that these files
// use, formatted as they are.

import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { contract as readContract } from './js/bin/wit.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = `${ROOT}docs/plugins/reference`;
const SDKS = `${ROOT}plugins/sdk`;
const WIDTH = 100;

const CONTRACT = readContract(`${ROOT}wit/v1`);

const read = (path) => readFileSync(`${SDKS}/${path}`, 'utf8');
const pascal = (name) => name.replace(/(^|-)([a-z0-9])/g, (_, _dash, char) => char.toUpperCase());
const camel = (name) => name.replace(/-([a-z0-9])/g, (_, char) => char.toUpperCase());
const snake = (name) => name.replaceAll('-', '_');

// Markdown

/** A word that begins a list, a heading or a quotation at the start of a line. */
const MARKUP = /^([-+*>]|#+|\d+[.)])$/;

/** Wraps a paragraph. */
function wrap(text, first, rest) {
  const lines = [];
  let line = '';
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const indent = lines.length ? rest : first;
    if (line && `${indent}${line} ${word}`.length > WIDTH && !MARKUP.test(word)) {
      lines.push(indent + line);
      line = word;
    } else {
      line = line ? `${line} ${word}` : word;
    }
  }
  return [...lines, (lines.length ? rest : first) + line].join('\n');
}

/** Returns a doc comment as Markdown: paragraphs are wrapped, lists and code blocks kept. */
function prose(lines, indent = '') {
  const blocks = [];
  let block;
  for (const line of lines) {
    if (block?.code) {
      block.lines.push(line);
      if (line.startsWith('```')) block = undefined;
    } else if (line.startsWith('```')) {
      blocks.push((block = { code: true, lines: [line] }));
    } else if (line.trim() === '') {
      block = undefined;
    } else if (line.startsWith('- ')) {
      blocks.push((block = { item: true, lines: [line.slice(2)] }));
    } else if (block) {
      block.lines.push(line);
    } else {
      blocks.push((block = { lines: [line] }));
    }
  }
  const show = ({ code, item, lines }) => {
    if (code) return lines.map((line) => (line ? indent + line : '')).join('\n');
    const [first, rest] = item ? [`${indent}- `, `${indent}  `] : [indent, indent];
    return wrap(lines.join(' '), first, rest);
  };
  const join = (text, now, n) => `${text}${n === 0 ? '' : now.item && blocks[n - 1].item ? '\n' : '\n\n'}${show(now)}`;
  return blocks.reduce(join, '');
}

/** Returns a list of functions or fields: each signature with its documentation. */
function list(items) {
  const entry = ({ signature, docs }) => [`- \`${signature}\``, prose(docs, '  ')].filter(Boolean).join('\n\n');
  return items.map(entry).join('\n\n');
}

const paragraphs = (...parts) => parts.filter(Boolean).join('\n\n');

const cell = (text) => text.replaceAll('|', '\\|');
const row = (...cells) => `| ${cells.map(cell).join(' | ')} |`;
const table = (head, rows) => [row(...head), `|${head.map(() => '---|').join('')}`, ...rows].join('\n');

const page = (title, source, ...sections) =>
  `${paragraphs(
    `# ${title}`,
    prose([`Generated from ${source} by \`plugins/sdk/reference.mjs\`. [Plugins](../../PLUGINS.md) has the rules of the contract.`]),
    ...sections,
  )}\n`;

// The contract

const FILES = ['payments', 'disputes', 'settlements', 'mandates', 'sms', 'identity', 'host', 'types'];
const INTERFACES = FILES.flatMap((name) => CONTRACT.interfaces.filter(({ file }) => file === `${name}.wit`));
const HOST_FUNCTIONS = CONTRACT.worlds.find(({ name }) => name === 'host').import;
/** The interfaces that plugins export. */
const EXPORTED = INTERFACES.filter(({ name, functions }) => functions.length && !HOST_FUNCTIONS.includes(name));
const TYPES = new Set(INTERFACES.flatMap(({ types }) => types.map(({ name }) => name)));

const wit = ({ name, of }) => (of.length ? `${name}<${of.map(wit).join(', ')}>` : name);

/** Returns the name of the contract's type in a type. */
function named({ name, of }) {
  return TYPES.has(name) ? name : of.map(named).find(Boolean);
}

function linked(type) {
  const target = named(type);
  return target ? `[\`${wit(type)}\`](#${target})` : `\`${wit(type)}\``;
}

function witType({ kind, docs, name, parts }) {
  const meaning = ({ docs }) => docs.join(' ');
  const rows = parts.map((part) =>
    kind === 'record'
      ? row(`\`${part.name}\``, linked(part.type), meaning(part))
      : row(`\`${part.name}${part.type ? `(${wit(part.type)})` : ''}\``, meaning(part)),
  );
  const head = kind === 'record' ? ['Field', 'Type', 'Meaning'] : ['Case', 'Meaning'];
  return paragraphs(`### ${name}`, prose(docs), table(head, rows));
}

function witFunction({ name, docs, parameters, result }) {
  const taken = parameters.map((each) => `${each.name}: ${wit(each.type)}`).join(', ');
  const signature = `${name}: func(${taken})${result ? ` -> ${wit(result)}` : ''}`;
  return paragraphs(['```wit', signature, '```'].join('\n'), prose(docs));
}

function contractPage() {
  const sections = INTERFACES.map(({ name, docs, types, functions }) =>
    paragraphs(`## ${name}`, prose(docs), ...functions.map(witFunction), ...types.map(witType)),
  );
  const worlds = CONTRACT.worlds.map(({ name, docs, include, import: imported, export: exported }) => {
    const links = (names) => names.map((each) => `[\`${each}\`](#${each})`);
    const parts = [...include.map((each) => `\`${each}\``), ...links(imported), ...links(exported)];
    return row(`\`${name}\``, parts.join(', '), docs.join(' '));
  });
  return page(
    'Reference: the contract',
    '`wit/v1`',
    prose(CONTRACT.docs),
    '## Worlds',
    prose(['A world is a set of interfaces to start from. The host looks only at the exported interfaces.']),
    table(['World', 'Interfaces', 'For'], worlds),
    ...sections,
  );
}

/** Returns the functions of exported interfaces in a language, by interface. */
function exportedInterfaces(language, show) {
  return [`\`\`\`${language}`, EXPORTED.map(show).join('\n\n'), '```'].join('\n');
}

// Rust

function rustType({ name, of }) {
  const inner = of.map(rustType);
  if (name === 'option') return `Option<${inner[0]}>`;
  if (name === 'list') return `Vec<${inner[0]}>`;
  if (name === 'tuple') return `(${inner.join(', ')})`;
  if (name === 'result') return `Result<${inner.join(', ')}>`;
  if (name === 'string') return 'String';
  return TYPES.has(name) ? pascal(name) : name;
}

const rustFunction = ({ name, parameters, result }) => {
  const taken = parameters.map((each) => `${snake(each.name)}: ${rustType(each.type)}`);
  return `    fn ${snake(name)}(${taken.join(', ')}) -> ${rustType(result)};`;
};

/** Replaces links to items by their names, and marks code as Rust. */
function rustdoc(lines) {
  let inside = false;
  const code = (line) => {
    if (!line.startsWith('```')) return inside ? line : line.replace(/\[(`[^`]+`)\](\([^)]*\))?/g, '$1').replace(/^# (.*)/, '**$1.**');
    inside = !inside;
    return line === '```' && inside ? '```rust' : line;
  };
  // Paths within the crate.
  return lines.map(code).map((line) => line.replaceAll('`crate::', '`'));
}

/** Joins the lines of a signature. */
const joined = (lines) =>
  lines
    .map((line) => line.trim())
    .join(' ')
    .replace(/\( /g, '(')
    .replace(/,? \)/g, ')')
    .replace(/ ?(\{|;)$/, '')
    .replace('= |', '=')
    .replace('(mut self', '(self');

/** Returns the module's documentation, and its public items with their members. */
function rustItems(text) {
  const [lines, items] = [text.split('\n'), []];
  const head = lines.filter((line) => line.startsWith('//!')).map((line) => line.replace(/^\/\/! ?/, ''));
  let [docs, hidden, owner] = [[], false, undefined];
  for (let n = 0; n < lines.length && lines[n] !== '#[cfg(test)]'; n += 1) {
    const line = lines[n];
    const doc = line.match(/^ *\/\/\/ ?(.*)$/);
    if (doc) {
      docs.push(doc[1]);
      continue;
    }
    if (line.trim().startsWith('#[')) {
      hidden ||= /doc\(hidden\)|deprecated/.test(line);
      while (!lines[n].trimEnd().endsWith(']')) n += 1;
      continue;
    }
    const signature = () => {
      const from = n;
      while (!/[{;]$/.test(lines[n])) n += 1;
      return joined(lines.slice(from, n + 1)).replace(/^pub /, '');
    };
    const type = line.match(/^pub (struct|enum|trait) (\w+)/);
    const implemented = line.match(/^impl(?:<[^>]*>)? (?:(.+) for )?(\w+)/);
    if (type && !hidden) {
      owner = { signature: `${type[1]} ${type[2]}`, name: type[2], docs, members: [], kind: type[1] };
      items.push(owner);
    } else if (implemented) {
      const [, of, name] = implemented;
      owner = { name, members: [], kind: of ? 'of' : 'impl' };
      if (of && docs.length) items.push({ ...owner, kind: 'impl', members: [{ signature: `impl ${of} for ${name}`, docs }] });
      if (!of) items.push(owner);
    } else if (line === '}') {
      owner = undefined;
    } else if (/^pub (const )?fn /.test(line) && !hidden) {
      items.push({ signature: signature(), docs, kind: 'fn' });
    } else if (owner?.kind === 'impl' && /^ {4}pub (const )?fn /.test(line)) {
      owner.members.push({ signature: signature(), docs });
    } else if (owner?.kind === 'trait' && /^ {4}fn /.test(line)) {
      owner.members.push({ signature: signature(), docs });
    } else if (owner?.kind === 'struct' && /^ {4}pub \w+:/.test(line)) {
      owner.members.push({ signature: line.trim().replace(/^pub |,$/g, ''), docs });
    } else if (owner?.kind === 'enum' && /^ {4}\w/.test(line)) {
      owner.members.push({ signature: line.trim().replace(/,$/, ''), docs });
    } else if (line.startsWith('macro_rules!') && docs.length) {
      items.push({ signature: `${line.match(/! (\w+)/)[1]}!`, docs, kind: 'fn' });
    }
    [docs, hidden] = [[], false];
  }
  return { head, items };
}

/** Returns all files of a module: its own, and those of its folder. */
function rustFiles(name) {
  const folder = `rust/src/${name}`;
  const inner = existsSync(`${SDKS}/${folder}`) ? readdirSync(`${SDKS}/${folder}`).sort() : [];
  return [`${folder}.rs`, ...inner.map((file) => `${folder}/${file}`)].map((path) => rustItems(read(path)));
}

function rustModule(name, title = name) {
  const files = rustFiles(name);
  const items = files.flatMap((file) => file.items);
  const types = new Map();
  for (const item of items.filter(({ kind }) => kind !== 'fn')) {
    const type = types.get(item.name) ?? { name: item.name, docs: [], members: [] };
    type.members.push(...item.members);
    types.set(item.name, { ...type, docs: item.docs ?? type.docs, signature: item.signature ?? type.signature });
  }
  const show = (parts) => list(parts.map((part) => ({ ...part, docs: rustdoc(part.docs) })));
  const typeSection = (type) => {
    const wire = type.name.toLowerCase();
    const docs = type.signature ? rustdoc(type.docs) : [`The type [\`${wire}\`](contract.md#${wire}) of the contract.`];
    return paragraphs(`### ${title}::${type.name}`, prose(docs), show(type.members));
  };
  return paragraphs(
    `## ${title}`,
    prose(rustdoc(files[0].head)),
    show(items.filter(({ kind }) => kind === 'fn')),
    ...[...types.values()].filter(({ signature, members }) => signature || members.length).map(typeSection),
  );
}

function rustPage() {
  const lib = read('rust/src/lib.rs');
  const modules = [...lib.matchAll(/^pub mod (\w+);$/gm)].map(([, name]) => name);
  const interfaces = [...lib.matchAll(/^interface!\(\n((?: {4}\/\/\/ .*\n)+) {4}(\w+),/gm)];
  const rows = interfaces.map(([, docs, name]) => row(`\`${name}\``, docs.replace(/ *\/\/\/ /g, '').trim().split('\n').join(' ')));
  const traits = exportedInterfaces('rust', ({ name, functions }) =>
    [`// ${snake(name)}`, 'trait Guest {', ...functions.map(rustFunction), '}'].join('\n'),
  );
  const { head, items } = rustItems(lib);
  const macros = items.filter(({ signature }) => signature?.endsWith('!'));
  return page(
    'Reference: the SDK for Rust',
    '`plugins/sdk/rust`',
    // The last section is for maintainers of the SDK.
    prose(rustdoc(head.slice(0, head.indexOf('# How it works')))),
    '## Interfaces',
    prose([
      'Each module has the trait `Guest` and the types of its interface. Names of types are in upper camel case, those',
      'of fields and functions in snake case; the [contract](contract.md) has their meaning. Shared types are in the',
      'modules `types`, `payments` and `identity`.',
    ]),
    table(['Module', 'Interface'], rows),
    traits,
    '## Macros',
    list(macros),
    rustModule('fault', 'types'),
    ...modules.map((name) => rustModule(name)),
  );
}

// JavaScript

/** Returns the text of a TSDoc comment, whose tag becomes a sentence. */
const tsdoc = (text) =>
  text
    .replace(/^\s*\/\*\*|\*\/\s*$/g, '')
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trim())
    .map((line) => line.replace(/^@throws \{(\w+)\} /, 'Throws `$1`: '));

/** Returns declarations with their documentation and their members. */
function typescriptItems(lines) {
  const items = [];
  let docs = [];
  for (let n = 0; n < lines.length; n += 1) {
    const line = lines[n].trim();
    if (line === '') continue;
    if (line.startsWith('/**')) {
      const from = n;
      while (!lines[n].includes('*/')) n += 1;
      docs = tsdoc(lines.slice(from, n + 1).join('\n'));
      continue;
    }
    const from = n;
    while (!/[;{]$/.test(lines[n])) n += 1;
    const signature = joined(lines.slice(from, n + 1)).replace(/^export /, '');
    const item = { signature: signature.replace('WireFault', 'Fault'), docs, members: [] };
    if (lines[n].endsWith('{')) {
      const [indent] = lines[from].match(/^ */);
      const end = lines.indexOf(`${indent}}`, n);
      item.members = typescriptItems(lines.slice(n + 1, end));
      n = end;
    }
    if (!/^(import|type \*)/.test(signature)) items.push(item);
    docs = [];
  }
  return items;
}

const HAS_MEMBERS = /^(class|interface|namespace) (\w+)/;

const typescriptList = (items) =>
  list(items.map((item) => ({ ...item, signature: item.signature.replace(/^function /, '') })));

function typescriptSection(item, level, path = []) {
  const [, , own] = item.signature.match(HAS_MEMBERS);
  const name = [...path, own];
  const inner = item.members.filter(({ signature }) => HAS_MEMBERS.test(signature));
  const plain = item.members.filter((member) => !inner.includes(member));
  const sections = inner.map((member) => typescriptSection(member, `${level}#`, name));
  return paragraphs(`${level} ${name.join('.')}`, prose(item.docs), typescriptList(plain), ...sections);
}

/** Returns the declaration of an interface in contract.d.ts without comments. */
function typescriptInterface(name) {
  const text = read('js/contract.d.ts').match(new RegExp(`^export interface ${pascal(name)} \\{\\n(.*?)^\\}$`, 'ms'))[1];
  const functions = text.replace(/^ *\/\*\*.*?\*\/\n/gms, '');
  return `interface ${pascal(name)} {\n${functions}}`;
}

function javascriptPage() {
  const [sdk, testing] = ['js/index.d.ts', 'js/testing.d.ts'].map((path) => typescriptItems(read(path).split('\n')));
  const aliases = [...sdk, ...testing].filter(({ signature }) => !HAS_MEMBERS.test(signature));
  const isFunction = ({ signature }) => signature.startsWith('function ');
  const sections = (items, level) =>
    items.filter(({ signature }) => HAS_MEMBERS.test(signature)).map((item) => typescriptSection(item, level));
  return page(
    'Reference: the SDK for JavaScript',
    '`plugins/sdk/js`',
    prose(['Import it from `tollhouse-plugin`, and the fake host from `tollhouse-plugin/testing`.']),
    '## Interfaces',
    prose([
      'A plugin exports one object per interface, under its name in camel case: `export const checkout = { start(order)',
      '{ … } }`. Names of fields and functions are in camel case, those of types in upper camel case. A case of an enum',
      "is its name as a string, a variant `{ tag, val }`. `contract.d.ts` has all types; the [contract](contract.md) has",
      'their meaning. Functions throw a `Fault`.',
    ]),
    exportedInterfaces('ts', ({ name }) => typescriptInterface(name)),
    ...sections(sdk, '##'),
    '## Types',
    list(aliases.filter((item) => !isFunction(item))),
    '## Tests',
    typescriptList(aliases.filter(isFunction)),
    ...sections(testing, '###'),
  );
}

// Python

function pythonType({ name, of }) {
  const inner = of.map(pythonType);
  if (name === 'option') return `${inner[0]} | None`;
  if (name === 'list') return of[0].name === 'u8' ? 'bytes' : `list[${inner[0]}]`;
  if (name === 'tuple') return `tuple[${inner.join(', ')}]`;
  if (name === 'result') return inner[0];
  if (TYPES.has(name)) return pascal(name);
  return { string: 'str', bool: 'bool' }[name] ?? 'int';
}

const pythonFunction = ({ name, parameters, result }) => {
  const taken = ['self', ...parameters.map((each) => `${snake(each.name)}: ${pythonType(each.type)}`)];
  return `    def ${snake(name)}(${taken.join(', ')}) -> ${pythonType(result)}: ...`;
};

/** Returns the docstring that begins at a line, and the line after it. */
function docstring(lines, at) {
  if (!lines[at]?.trim().startsWith('"""')) return [[], at];
  let end = at;
  const isEnd = (line) => line.trimEnd().endsWith('"""');
  if (!isEnd(lines[at].trim().slice(3))) do end += 1; while (!isEnd(lines[end]));
  const text = lines.slice(at, end + 1).map((line) => line.trim());
  return [text.join('\n').replace(/^"""|"""$/g, '').split('\n'), end + 1];
}

/** Returns functions, classes and constants with their docstrings. Private names begin with `_`. */
function pythonItems(text) {
  const lines = text.split('\n');
  const [head, start] = docstring(lines, 0);
  const items = [];
  let owner;
  for (let n = start; n < lines.length; n += 1) {
    const line = lines[n];
    if (/^\S/.test(line) && !line.startsWith('@')) owner = undefined;
    const found = line.match(/^( *)(def|class) (\w+)/);
    const attribute = line.match(/^ +(?:self\.)?([a-z]\w*): (.*?)(?: = .*)?$/);
    const constant = line.match(/^([A-Z]\w*) = (.*)$/);
    if (found) {
      const [from, [, indent, kind, name]] = [n, found];
      while (!lines[n].endsWith(':')) n += 1;
      const signature = joined(lines.slice(from, n + 1)).replace(/^def |:$/g, '').replace(/\(self(, )?/, '(').replace(/ -> Self$/, '').replace(/-> "(\w+)"$/, '-> $1');
      const [docs] = docstring(lines, n + 1);
      if (kind === 'class') {
        owner = { signature: name, docs, members: [] };
        items.push(owner);
      } else if (name === '__init__' && owner) {
        const made = signature.replace('__init__', owner.signature).replace(/ -> None$/, '');
        if (!made.endsWith('()')) owner.members.push({ signature: made, docs });
      } else if (!name.startsWith('_') && indent.length <= 4) {
        (indent ? owner.members : items).push({ signature, docs });
      }
    } else if (owner && attribute && (line.startsWith('        self.') || /^ {4}\w/.test(line))) {
      owner.members.push({ signature: `${attribute[1]}: ${attribute[2]}`, docs: docstring(lines, n + 1)[0] });
    } else if (constant && lines[n + 1]?.startsWith('"""')) {
      items.push({ signature: line, docs: docstring(lines, n + 1)[0] });
    }
  }
  return { head, items };
}

function pythonModule(name) {
  const { head, items } = pythonItems(read(`python/tollhouse_plugin/${name}.py`));
  const classes = items.filter(({ members }) => members);
  const plain = items.filter(({ members }) => !members);
  const section = (item) => paragraphs(`### ${name}.${item.signature}`, prose(item.docs), list(item.members));
  return paragraphs(`## ${name}`, prose(head), list(plain), ...classes.map(section));
}

function pythonPage() {
  const modules = ['http', 'settings', 'state', 'vault', 'cache', 'log', 'faults', 'text', 'testing'];
  return page(
    'Reference: the SDK for Python',
    '`plugins/sdk/python`',
    prose(['Import modules from `tollhouse_plugin`: `from tollhouse_plugin import http, settings`.']),
    '## Interfaces',
    prose([
      'A plugin has one class per interface, with its name in upper camel case, derived from that of `wit_world.exports`:',
      '`class Checkout(exports.Checkout)`. Names of types are in upper camel case, those of fields and functions in snake',
      'case, cases of enums in capitals; a case of a variant is a class: `Refusal_Malformed`. Types of an interface are in',
      '`wit_world.exports.checkout`, shared ones in `wit_world.imports.types`, `payments` and `identity`. The',
      '[contract](contract.md) has their meaning. Functions raise a fault: `raise faults.not_found("…")`.',
    ]),
    exportedInterfaces('python', ({ name, functions }) =>
      [`class ${pascal(name)}(exports.${pascal(name)}):`, ...functions.map(pythonFunction)].join('\n'),
    ),
    ...modules.map(pythonModule),
  );
}

/** Returns the text of each page by its path. */
export function pages() {
  return new Map([
    [`${FOLDER}/contract.md`, contractPage()],
    [`${FOLDER}/rust.md`, rustPage()],
    [`${FOLDER}/javascript.md`, javascriptPage()],
    [`${FOLDER}/python.md`, pythonPage()],
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(FOLDER, { recursive: true });
  for (const [path, text] of pages()) writeFileSync(path, text);
}

// Provides the modules that a component imports from its host, served by the installed fake host.

const HOST = new URL('./host.js', import.meta.url).href;
const FUNCTIONS = {
  cache: ['get', 'put'],
  http: ['send'],
  log: ['write'],
  settings: ['get'],
  vault: ['basic', 'hmac', 'matches', 'secret'],
  'vault-transform': ['transform'],
};

const interfaceOf = (name) => name.match(/^tollhouse:plugin\/([a-z-]+)@/)?.[1];

export async function resolve(specifier, context, next) {
  return interfaceOf(specifier) in FUNCTIONS ? { url: specifier, shortCircuit: true } : next(specifier, context);
}

export async function load(url, context, next) {
  const name = interfaceOf(url);
  if (!(name in FUNCTIONS)) return next(url, context);
  const each = FUNCTIONS[name].map((f) => `export const ${f} = (...args) => called('${name}.${f}', args);`);
  const source = [`import { called } from '${HOST}';`, ...each].join('\n');
  return { format: 'module', source, shortCircuit: true };
}

#!/usr/bin/env node
// Builds the component of the package in this folder, including manifest.json. package.json
// configures the build: `main` is the plugin; in `tollhouse`, `wit` is the folder of the contract's
// WIT and `world` the world to export.

import { readFileSync, writeFileSync } from 'node:fs';

import { componentize } from 'componentize-qjs';

import { packed } from './pack.js';

const { main, tollhouse } = JSON.parse(readFileSync('package.json', 'utf8'));
const manifest = readFileSync('manifest.json');
const { component } = await componentize({
  witPath: tollhouse.wit,
  world: tollhouse.world,
  jsSource: readFileSync(main, 'utf8'),
  jsPath: main,
  moduleRoot: '.',
  sync: true,
});
const file = `${JSON.parse(manifest).name}.wasm`;
const wasm = packed(component, manifest);
writeFileSync(file, wasm);
console.log(`${file}: ${wasm.length} bytes`);

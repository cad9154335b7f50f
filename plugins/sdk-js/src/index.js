// What the author of a plugin depends on: docs/PLUGINS.md of Tollhouse tells the contract, contract.d.ts its types.

export * as cache from './cache.js';
export { Fault } from './fault.js';
export * as http from './http.js';
export * as log from './log.js';
export * as settings from './settings.js';
export * as vault from './vault.js';

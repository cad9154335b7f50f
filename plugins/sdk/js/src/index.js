// The SDK for Tollhouse plugins in JavaScript. docs/PLUGINS.md of Tollhouse describes the contract,
// and contract.d.ts has its types.

export * as cache from './cache.js';
export { Fault } from './fault.js';
export * as http from './http.js';
export * as log from './log.js';
export * as settings from './settings.js';
export * as state from './state.js';
export * as vault from './vault.js';

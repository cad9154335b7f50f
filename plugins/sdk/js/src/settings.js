// Settings of this plugin and provider account, set by the operator. They are not secret.

import * as wire from 'tollhouse:plugin/settings@1.0.0';

import { Fault } from './fault.js';
import { join } from './http.js';

/** Returns a setting, the manifest's default, or else `fallback`. */
export const get = (name, fallback) => wire.get(name) ?? fallback;

/** Returns a required setting, or throws `misconfigured` if it is absent or empty. */
export function required(name) {
  const value = get(name);
  if (!value) throw Fault.misconfigured(`the setting ${name} is missing`).withDetail('setting', name);
  return value;
}

/** Returns the base URL in a setting, joined to `path` by one slash. */
export const url = (name, path) => join(required(name), path);

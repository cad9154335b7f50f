// What the operator set for this plugin and these credentials; not secret.

import * as wire from 'tollhouse:plugin/settings@1.0.0';

import { Fault } from './fault.js';
import { join } from './http.js';

/** A setting, or the manifest's default for it, or else `fallback`. */
export const get = (name, fallback) => wire.get(name) ?? fallback;

/** A setting that must be there: `misconfigured` when it is absent or empty. */
export function required(name) {
  const value = get(name);
  if (!value) throw Fault.misconfigured(`the setting ${name} is missing`).withDetail('setting', name);
  return value;
}

/** The base URL that a setting holds, with `path` behind it and one slash between the two. */
export const url = (name, path) => join(required(name), path);

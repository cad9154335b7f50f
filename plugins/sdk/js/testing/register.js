// `node --import tollhouse-plugin/testing/register --test`: imports of host functions resolve to
// the fake host.

import { register } from 'node:module';

register('./hooks.js', import.meta.url);

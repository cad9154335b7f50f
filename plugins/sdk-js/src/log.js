// Lines for operators. Never a secret or personal data; the host removes the secrets it knows.

import * as wire from 'tollhouse:plugin/log@1.0.0';

/** For the author, while something is being looked for. */
export const debug = (message) => wire.write('debug', message);

/** Worth knowing. */
export const info = (message) => wire.write('info', message);

/** Worth a look. */
export const warn = (message) => wire.write('warn', message);

/** Somebody must act. */
export const error = (message) => wire.write('error', message);

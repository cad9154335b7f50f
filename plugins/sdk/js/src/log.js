// Log lines for operators. They must never contain a secret or personal data; the host removes the
// secrets that it knows.

import * as wire from 'tollhouse:plugin/log@1.0.0';

/** Logs details that help the plugin's author to debug. */
export const debug = (message) => wire.write('debug', message);

/** Logs a noteworthy event. */
export const info = (message) => wire.write('info', message);

/** Logs a problem that may need attention. */
export const warn = (message) => wire.write('warn', message);

/** Logs a problem that an operator must resolve. */
export const error = (message) => wire.write('error', message);

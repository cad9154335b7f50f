// Folders, ports and shells for the tests.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** Timeout of a script. */
const SCRIPT_TIMEOUT_MS = 180_000;

/** Creates an empty folder, which is removed when the test `t` ends. */
export function folder(t, name) {
  const made = mkdtempSync(join(tmpdir(), `${name}-`));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
}

/** Returns this number of unused ports. */
export async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(servers.map((server) => once(server.listen(0, '127.0.0.1'), 'listening')));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

/** The blocks of commands in a section of a document. */
export function commands(document, heading) {
  const text = readFileSync(`${ROOT}/${document}`, 'utf8');
  const level = heading.split(' ')[0];
  const section = text.split(`\n${heading}\n`)[1]?.split(`\n${level} `)[0];
  if (!section) throw new Error(`${document} has no ${heading}`);
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block);
}

/** Bash in a folder; its background processes run until `end`. */
export class Terminal {
  #groups = [];

  constructor(dir, env) {
    Object.assign(this, { dir, env });
  }

  /** Runs a script. Returns its exit code and output. */
  async type(script) {
    const file = join(this.dir, '.output');
    const output = openSync(file, 'w');
    const options = { cwd: this.dir, env: this.env, detached: true, stdio: ['ignore', output, output] };
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], options);
    closeSync(output);
    this.#groups.push(shell.pid);
    const late = setTimeout(() => this.end(), SCRIPT_TIMEOUT_MS);
    const [code] = await once(shell, 'exit');
    clearTimeout(late);
    return { code, output: readFileSync(file, 'utf8') };
  }

  /** Kills all processes that were started here. */
  end() {
    for (const group of this.#groups.splice(0)) {
      try {
        process.kill(-group, 'SIGKILL');
      } catch (error) {
        if (error.code !== 'ESRCH') throw error; // all processes have ended
      }
    }
  }
}

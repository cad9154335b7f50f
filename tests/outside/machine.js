// What a check takes of this machine: folders, ports, and commands that are typed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** How long commands may take that are typed together. */
const PATIENCE_MS = 180_000;

/** An empty folder, which is removed when the test `t` ends. */
export function folder(t, name) {
  const made = mkdtempSync(join(tmpdir(), `${name}-`));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
}

/** So many ports that nobody listens on. */
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

/** Bash in a folder; what it starts in the background goes on until `end`. */
export class Terminal {
  #groups = [];

  constructor(dir, env) {
    Object.assign(this, { dir, env });
  }

  /** Types a script; its exit code and all that it said. */
  async type(script) {
    const file = join(this.dir, '.said');
    const said = openSync(file, 'w');
    const options = { cwd: this.dir, env: this.env, detached: true, stdio: ['ignore', said, said] };
    const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], options);
    closeSync(said);
    this.#groups.push(shell.pid);
    const late = setTimeout(() => this.end(), PATIENCE_MS);
    const [code] = await once(shell, 'exit');
    clearTimeout(late);
    return { code, said: readFileSync(file, 'utf8') };
  }

  /** Ends everything that was started here. */
  end() {
    for (const group of this.#groups.splice(0)) {
      try {
        process.kill(-group, 'SIGKILL');
      } catch (error) {
        if (error.code !== 'ESRCH') throw error; // all of it has ended
      }
    }
  }
}

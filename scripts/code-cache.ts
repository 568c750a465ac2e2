// Compiles the service's bundle of a built package, whose folder is the argument: starts it, sends a request
// to each door, and writes the code of every function that has run. Node's compile cache holds only what is
// compiled before a module runs, so each start would parse and compile a thousand functions more.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { codeCacheOf, loadService } from './service-loader.ts';

const bundle = pathToFileURL(resolve(process.argv[2] ?? 'dist', 'bin/service/serve.js'));
const DEADLINE = 30_000;
const REQUESTS = [
  { door: 'graphql', path: '/graphql', body: '{"query":"{ hello }"}' },
  { door: 'rest', path: '/users/1' },
  { door: 'webhook', path: '/webhook', body: '{"event":"new_commit","data":{}}' },
  { door: 'management', path: '/livez' },
] as const;

/** Sends a request to a door; resolves to its status once the door has answered. */
async function ask({ door, path, body }: (typeof REQUESTS)[number] & { body?: string }): Promise<number> {
  for (const since = performance.now(); ; await delay(10)) {
    try {
      return await new Promise((done, fail) => {
        const headers = { 'content-type': 'application/json' };
        const options = { socketPath: join(folder, door), path, method: body ? 'POST' : 'GET', headers };
        request(options, (reply) => reply.resume().on('end', () => done(reply.statusCode ?? 0)))
          .on('error', fail)
          .end(body);
      });
    } catch (cause) {
      if (performance.now() - since > DEADLINE) throw cause;
    }
  }
}

const folder = mkdtempSync(join(tmpdir(), 'portico-'));
try {
  process.chdir(folder);
  const { exports, script } = loadService(bundle);
  const ports = REQUESTS.flatMap(({ door }) => [`--${door}-port`, `unix:${join(folder, door)}`]);
  const stopped = exports.serve([...ports, '--log-level', 'silent', '--shutdown-pre-stop-delay', '0']);
  await Promise.race([stopped, Promise.all(REQUESTS.map(ask))]);
  writeFileSync(codeCacheOf(fileURLToPath(bundle)), script.createCachedData());
  process.kill(process.pid, 'SIGTERM');
  await stopped;
} finally {
  process.chdir(tmpdir());
  rmSync(folder, { recursive: true, force: true });
}

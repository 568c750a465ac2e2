import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { postgresUrl, withoutPostgres } from '../support/databases.ts';
import { buildPackage } from '../support/package.ts';
import { startPortico } from '../support/portico-process.ts';
import { shownCommand } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const { built, ...cleanup } = await buildPackage();
after(() => cleanup[Symbol.asyncDispose]());

const ROOT = join(import.meta.dirname, '../..');
const { command } = shownCommand('docs/DEPLOYMENT.md', /^node \$\(/);

/** The words that the command of the guide gives to node, with its paths replaced. */
function wordsFor(data: string): readonly string[] {
  const script = `node() { printf '%s\\n' "$@"; }\n${command}`;
  const words = execFileSync('sh', ['-c', script], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  return words.map((word) => word.replace(/=\/data$/, `=${data}`).replace('/node_modules/portico', built));
}

/** Handlers that try what the profile takes away, in the thread of the service and in one of their own. */
const MODULE = `import type { PorticoConfig } from 'portico';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
const tried = (name, what) => { try { what(); return name + ': done'; } catch (error) { return name + ': ' + error.code; } };
const handler = (delivery, { log }) => log.info({ tried: [
  tried('run', () => { const { error } = spawnSync('true'); if (error) throw error; }),
  tried('read', () => readFileSync('/etc/hostname')),
  tried('write', () => writeFileSync(process.cwd() + '/../outside', '')),
] }, 'tried');
export default {
  management: { include: '*', endpointAccess: 'cpuprofile=unrestricted,heapdump=unrestricted' },
  webhook: { handlers: { here: handler, apart: { handler, isolate: true } } },
} satisfies PorticoConfig;
`;

const DENIED = ['run', 'read', 'write'].map((name) => `${name}: ERR_ACCESS_DENIED`);

const engines = {
  SQLite: { url: async (data: string) => `sqlite:${join(data, 'portico.db')}`, skip: false },
  PostgreSQL: { url: () => postgresUrl(), skip: withoutPostgres ?? false },
};
for (const [engine, { url, skip }] of Object.entries(engines)) {
  test(`the service runs under the permission profile on ${engine}, and its handlers can do no more`, {
    skip,
  }, async () => {
    await using folder = await temporaryFolder();
    const data = join(await realpath(folder.path), 'data');
    await mkdir(data);
    const words = wordsFor(data);
    const flags = words.filter((word) => word.startsWith('--'));
    const [main = '', ...args] = words.filter((word) => !word.startsWith('--'));
    await writeFile(join(data, 'portico.config.mts'), MODULE);
    await using portico = startPortico({
      cwd: data,
      nodeArgs: flags,
      main,
      args,
      env: { DATABASE_URL: await url(data), NODE_DISABLE_COMPILE_CACHE: '1' },
    });
    await portico.ready();
    const { rest, management, webhook, graphql } = portico.urls;
    const body = '{"name":"Ada","email":"ada@example.com"}';
    assert.equal((await fetch(`${rest}/users`, { method: 'POST', body })).status, 200);
    for (const event of ['here', 'apart']) {
      await fetch(`${webhook}/webhook`, { method: 'POST', body: JSON.stringify({ event }) });
    }
    const found = () => portico.logs().filter(({ msg }) => msg === 'tried');
    await waitFor('both handlers', () => found().length === 2);
    for (const { tried } of found()) assert.deepEqual(tried, DENIED);
    const page = await fetch(`${graphql}/graphql`, { headers: { accept: 'text/html' } });
    assert.equal(page.status, 200);
    for (const path of [
      'health',
      'info',
      'env',
      'prometheus',
      'threaddump',
      'cpuprofile?seconds=1',
      'docs',
    ]) {
      const reply = await fetch(`${management}/actuator/${path}`);
      await reply.arrayBuffer();
      assert.equal(reply.status, 200, path);
    }
    portico.child.kill('SIGTERM');
    assert.equal(await portico.exited(), 0);
    assert.equal(portico.stderr.includes('Warning'), false, portico.stderr);
  });
}

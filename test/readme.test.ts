import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createService } from '../src/app/service.ts';
import { loadConfig } from '../src/config/load.ts';
import { captureLog } from './support/log-capture.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const DEFAULT_PORTS = { graphql: 4000, rest: 8000, management: 8080, webhook: 3000 } as const;

/** The commands of all console blocks with what they print. */
function examples(): readonly { readonly command: string; readonly output: string }[] {
  const blocks = [...README.matchAll(/```console\n(.*?)```/gs)].map(([, block = '']) => block);
  return blocks
    .join('')
    .split(/^\$ /m)
    .slice(1)
    .map((example) => {
      const end = example.indexOf('\n');
      return { command: example.slice(0, end), output: example.slice(end + 1).trimEnd() };
    });
}

test('the two commands stand at the top, and CI runs what they say', () => {
  assert.match(README, /^# Portico\n\n```sh\nnpm ci && npm start\nnpm ci && npm test\n```/);
  const ci = readFileSync(join(ROOT, '.ci/run'), 'utf8');
  for (const line of ['npm ci', 'npm run check', 'npm test']) assert.match(ci, new RegExp(`^${line}$`, 'm'));
});

test('every command of the tour prints what the README shows', async () => {
  await using folder = await temporaryFolder();
  const env = { GRAPHQL_PORT: '0', REST_PORT: '0', MANAGEMENT_PORT: '0', PORT: '0', SHUTDOWN_LINGER: '0' };
  const config = await loadConfig({ argv: [], env, cwd: folder.path });
  const settings = { ...config.settings, 'database.url': `sqlite:${join(folder.path, 'portico.db')}` };
  await using service = await createService({ ...config, settings }, { logStream: captureLog().stream });
  const urls = await service.listen();
  assert.ok(examples().length > 10);
  for (const { command, output } of examples()) {
    let here = command;
    for (const door of ['graphql', 'rest', 'management', 'webhook'] as const) {
      here = here.replace(`http://127.0.0.1:${DEFAULT_PORTS[door]}`, urls[door] ?? '');
    }
    const { stdout } = await promisify(execFile)('sh', ['-c', here]);
    assert.equal(stdout.trimEnd(), output, command);
  }
});

test('every link to a file of the project leads somewhere', () => {
  for (const [, target = ''] of README.matchAll(/\]\((?!http)([^)#]+)/g)) {
    assert.ok(readFileSync(join(ROOT, target)).length > 0, target);
  }
});

test('the tables of options and of error codes are those the code describes', () => {
  execFileSync(process.execPath, [join(ROOT, 'scripts/docs.ts'), '--check']);
});

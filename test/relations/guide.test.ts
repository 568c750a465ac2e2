import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startPortico } from '../support/portico-process.ts';
import { runShown, shownCommands } from '../support/shown-commands.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const REQUESTS = shownCommands('docs/RELATIONS.md');

test('the declaration of the guide is served, and every request prints what it shows', async () => {
  const guide = await readFile(join(import.meta.dirname, '../../docs/RELATIONS.md'), 'utf8');
  const declaration = /```json\n(.*?)```/s.exec(guide)?.[1] ?? '';
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.json'), declaration);
  await using portico = startPortico({ cwd: folder.path, env: { INTERFACES: 'rest' } });
  await portico.ready();
  for (const request of REQUESTS) {
    const { code, stdout } = await runShown(request, { cwd: folder.path, urls: portico.urls });
    assert.equal(code, 0, request.command);
    assert.equal(
      stdout.trimEnd().replaceAll('\r\n', '\n'),
      request.output,
      `${request.where}: ${request.command}`,
    );
  }
});

test('the tables of the page on existing databases are served, and its commands print what they show', async () => {
  const guide = await readFile(join(import.meta.dirname, '../../docs/EXISTING.md'), 'utf8');
  await using folder = await temporaryFolder();
  {
    using db = new DatabaseSync(join(folder.path, 'shop.db'));
    db.exec(/```sql\n(.*?)```/s.exec(guide)?.[1] ?? '');
  }
  await writeFile(join(folder.path, 'portico.config.json'), /```json\n(.*?)```/s.exec(guide)?.[1] ?? '');
  const env = { INTERFACES: 'rest', DATABASE_URL: 'sqlite:shop.db' };
  await using portico = startPortico({ cwd: folder.path, env });
  await portico.ready();
  for (const shown of shownCommands('docs/EXISTING.md')) {
    const { code, stdout } = await runShown(shown, { cwd: folder.path, urls: portico.urls });
    assert.equal(code, 0, shown.command);
    assert.equal(stdout.trimEnd(), shown.output, `${shown.where}: ${shown.command}`);
  }
});

test('the declaration of the page on rules is served, and its commands print what they show', async () => {
  const guide = await readFile(join(import.meta.dirname, '../../docs/RULES.md'), 'utf8');
  const declaration = /```json\n(.*?)```/s.exec(guide)?.[1] ?? '';
  await using folder = await temporaryFolder();
  await writeFile(join(folder.path, 'portico.config.json'), declaration);
  await using portico = startPortico({ cwd: folder.path, env: { INTERFACES: 'rest' } });
  await portico.ready();
  assert.match(portico.stdout, /some relations have rules and these have none/);
  for (const shown of shownCommands('docs/RULES.md')) {
    const { code, stdout } = await runShown(shown, { cwd: folder.path, urls: portico.urls });
    assert.equal(code, 0, shown.command);
    assert.equal(stdout.trimEnd(), shown.output, `${shown.where}: ${shown.command}`);
  }
});

test('the commands of the page on clients write and check types, and its programs print what they say', async () => {
  const read = (page: string) => readFile(join(import.meta.dirname, '../../docs', page), 'utf8');
  const declaration = /```json\n(.*?)```/s.exec(await read('RELATIONS.md'))?.[1] ?? '';
  await using folder = await temporaryFolder();
  // The page sends webhooks too.
  const sending = { allowPrivate: true, portal: { port: 0 } };
  const config = { ...JSON.parse(declaration), webhook: { sending } };
  await writeFile(join(folder.path, 'portico.config.json'), JSON.stringify(config));
  const printed: string[] = [];
  for (const shown of shownCommands('docs/CLIENTS.md')) {
    const { code, stdout } = await runShown(shown, { cwd: folder.path });
    assert.equal(code, 0, shown.command);
    printed.push(stdout);
  }
  assert.deepEqual(printed, ['portico.d.ts written.\n', 'portico.d.ts is up to date.\n']);
  await using portico = startPortico({ cwd: folder.path, env: { INTERFACES: 'rest' } });
  await portico.ready();
  const programs = Array.from((await read('CLIENTS.md')).matchAll(/```ts\n(.*?)```/gs), ([, text]) => text);
  await mkdir(join(folder.path, 'node_modules'));
  await symlink(join(import.meta.dirname, '../..'), join(folder.path, 'node_modules/portico'));
  const program = programs.join('\n').replace('http://127.0.0.1:8000', portico.urls.rest ?? '');
  await writeFile(join(folder.path, 'program.mts'), program);
  const { stdout } = await promisify(execFile)(process.execPath, ['program.mts'], { cwd: folder.path });
  // The replay prints its progress, and once more at its end.
  assert.match(stdout, /^Emma Jane Austen 1\nINVALID_ROW #\/name\ncreated 3 Shirley\n(?:\d 1 whsec_\S+\n)+$/);
});

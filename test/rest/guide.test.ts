import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { guideCommands } from '../support/guide-commands.ts';
import { open } from './support/rest-door.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/REST.md'), 'utf8');

const run = promisify(execFile);

/** What differs from run to run: cursors, versions and moments. */
const CHANGING =
  /(?<=cursor=)[\w-]{20,}|(?<=")\d{13}(?=")|(?<=W\/")[\d.]+(?=")|(?<=[: ]\d+\.)\d{13}|\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT/g;

/** The text with a name for each of them; equal ones stay equal. */
function steady(text: string): string {
  const seen = new Map<string, string>();
  return text.replace(CHANGING, (found) => {
    const name = seen.get(found) ?? `<${seen.size}>`;
    seen.set(found, name);
    return name;
  });
}

test('every command of the guide prints what it shows, in this order', async () => {
  const env = Object.fromEntries(
    [...GUIDE.matchAll(/^([A-Z_]+)=(\S+) npm start$/gm)].map(([, name = '', value = '']) => [name, value]),
  );
  await using door = await open(env);
  const printed: string[] = [];
  /** What the guide copies from an earlier output is copied here too. */
  const copied = new Map<string, string>();
  for (const { command, output } of guideCommands(GUIDE)) {
    const here = command
      .replaceAll('http://127.0.0.1:8000', door.url)
      .replace(CHANGING, (shown) => copied.get(shown) ?? shown);
    const { stdout } = await run('sh', ['-c', here]).catch((failure: { code: number; stdout: string }) => {
      // curl says so that its time for an event stream is over.
      if (failure.code !== 28) throw failure;
      return failure;
    });
    const said = stdout.replaceAll('\r', '').trimEnd();
    printed.push(said);
    const actual = said.match(CHANGING) ?? [];
    for (const [i, shown] of (output.match(CHANGING) ?? []).entries()) copied.set(shown, actual[i] ?? '');
  }
  const expected = guideCommands(GUIDE).map(({ output }) => output);
  assert.ok(expected.length > 5);
  assert.equal(steady(printed.join('\n---\n')), steady(expected.join('\n---\n')));
});

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { PRE_STOP_DELAY } from '../../src/telemetry/health.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const UNIT = join(import.meta.dirname, '../../deploy/systemd/portico.service');
const text = readFileSync(UNIT, 'utf8');
const missing = existsSync('/usr/bin/systemd-analyze') ? false : 'systemd-analyze is not installed';

const value = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1];

test('the unit starts node itself, and waits longer for a stop than one can take', () => {
  assert.match(value('ExecStart') ?? '', /^\/usr\/bin\/node \S+\/bin\/portico\.js serve$/);
  assert.ok(Number(value('TimeoutStopSec')) * 1_000 > PRE_STOP_DELAY.max + 10_000);
  assert.equal(value('MemoryDenyWriteExecute'), undefined);
});

test('systemd takes the unit, and finds it confined', { skip: missing }, async () => {
  await using folder = await temporaryFolder();
  const copy = join(folder.path, 'portico.service');
  const verify = async (unit: string) => {
    // The program must exist where the unit is checked.
    await writeFile(copy, unit.replace('/usr/bin/node', process.execPath));
    return spawnSync('systemd-analyze', ['verify', '--man=no', copy], { encoding: 'utf8' }).stderr;
  };
  const own = (output: string) => output.split('\n').filter((line) => line.includes('portico.service'));
  assert.deepEqual(own(await verify(text)), []);
  assert.notDeepEqual(own(await verify(text.replace('ProtectSystem=strict', 'ProtectSystem=very'))), []);
  const args = ['security', '--offline=true', '--no-pager', copy];
  await writeFile(copy, text);
  const [, level] =
    /exposure level for \S+: ([\d.]+)/.exec(execFileSync('systemd-analyze', args, { encoding: 'utf8' })) ??
    [];
  assert.ok(Number(level) < 2, `exposure ${level}`);
});

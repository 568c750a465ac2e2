import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { WAL_LIMIT } from '../../src/sql/sqlite/connection.ts';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

/** A program that reads for as long as it lives. */
const READER = `
  const { DatabaseSync } = require('node:sqlite');
  const db = new DatabaseSync(process.argv[1], { readOnly: true });
  db.exec('BEGIN; SELECT count(*) FROM users');
  process.stdout.write('reading');
  setInterval(() => {}, 1000);`;

test('the WAL that another program holds is measured and warned of, and begins again once that program ends', async () => {
  await using service = await startTestService({
    database: 'file',
    env: { INTERFACES: 'rest,management', MANAGEMENT_INCLUDE: 'metrics' },
  });
  await service.listen();
  const { rest, management } = service.urls;
  const file = join(service.folder, 'portico.db');
  const wal = () => statSync(`${file}-wal`).size;
  /** How often the WAL has begun again (sqlite.org/walformat.html, "checkpoint sequence number"). */
  const beginnings = () => readFileSync(`${file}-wal`).readUInt32BE(12);
  const body = JSON.stringify({ name: 'n'.repeat(100), email: `${'e'.repeat(100)}@b` });
  const create = async () => {
    const creates = Array.from({ length: 50 }, () => fetch(`${rest}/users`, { method: 'POST', body }));
    for (const reply of await Promise.all(creates)) assert.equal(reply.status, 200);
  };
  await create();
  const reader = spawn(process.execPath, ['-e', READER, file], { stdio: ['ignore', 'pipe', 'inherit'] });
  let held: number | undefined;
  try {
    await once(reader.stdout, 'data');
    while (wal() <= WAL_LIMIT) await create();
    const metric = await fetch(`${management}/actuator/metrics/database.wal.size`);
    const { measurements, baseUnit } = Object(await metric.json());
    assert.ok(Number(measurements[0].value) > WAL_LIMIT && baseUnit === 'bytes');
    const warning = await waitFor('the warning', () => service.log.entries.find(({ walBytes }) => walBytes));
    assert.equal(warning.level, 'warn');
    assert.equal(warning.msg, 'a long read of another program lets the WAL grow');
    assert.ok(Number(warning.seconds) >= 10 && Number(warning.walBytes) > WAL_LIMIT);
    held = beginnings();
    assert.ok(wal() > WAL_LIMIT);
  } finally {
    reader.kill('SIGKILL');
  }
  await waitFor('a WAL that begins again', async () => {
    await create();
    return beginnings() !== held;
  });
  assert.ok(wal() <= 4 * WAL_LIMIT);
});

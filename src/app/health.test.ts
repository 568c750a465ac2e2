import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { captureLog } from '../../test/support/log-capture.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { openLog } from '../telemetry/log.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { healthWatch } from './doors.ts';
import { loadConfig } from './load-config.ts';
import { createService } from './service.ts';

describe('health checks', () => {
  test('the disk that health checks is that of the data, also when a file: URL names it', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'a b.db');
    for (const place of [file, `${pathToFileURL(file)}?psow=1`]) {
      const config = await loadConfig({
        argv: [`--database-url=sqlite:${place}`, '--interfaces=rest,management', '--log-level=silent'],
        env: {},
        cwd: folder.path,
      });
      await using service = await createService(config);
      const reply = await service.doors.management?.inject('/actuator/health/diskSpace');
      const { status, details } = reply?.json() ?? {};
      assert.deepEqual([status, details.path], ['UP', folder.path]);
    }
  });
});

describe('health watch', () => {
  test('the log tells when a status changes, and only then; the meter has every run', async () => {
    const { stream, entries } = captureLog();
    const metrics = new Metrics();
    const watch = healthWatch({ metrics, log: await openLog({ level: 'info', stream }) });
    watch('db', { status: 'UP' }, 1);
    watch('db', { status: 'DOWN', details: { error: 'Error: connect postgres://u:geheim@h/d' } }, 500);
    watch('db', { status: 'DOWN' }, 1);
    watch('disk', { status: 'DOWN', details: { code: 7 } }, 1);
    watch('db', { status: 'UP' }, 1);
    watch('slow', { status: 'UP' }, 10_001);
    assert.deepEqual(
      entries.map(({ time, ...entry }) => entry),
      [
        {
          level: 'warn',
          check: 'db',
          status: 'DOWN',
          error: 'Error: connect postgres://******@h/d',
          msg: 'health check failed',
        },
        { level: 'warn', check: 'disk', status: 'DOWN', code: 7, msg: 'health check failed' },
        { level: 'info', check: 'db', msg: 'health check up again' },
        { level: 'warn', check: 'slow', durationMs: 10_001, msg: 'health check slow' },
      ],
    );
    const series = [...(metrics.meter('health.check')?.series() ?? [])];
    assert.deepEqual(
      series.map(({ tags }) => tags[0]?.value),
      ['db', 'disk', 'slow'],
    );
    const [db] = series.map((one) => one.measure());
    const total = db?.find(({ statistic }) => statistic === 'TOTAL_TIME')?.value ?? 0;
    assert.equal(db?.find(({ statistic }) => statistic === 'COUNT')?.value, 4);
    assert.ok(Math.abs(total - 0.503) < 1e-9);
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { captureLog } from '../../test/support/log-capture.ts';
import { openLog } from '../observability/log/log.ts';
import { Metrics } from '../observability/metrics/metrics.ts';
import { healthWatch } from './health-watch.ts';

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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HealthReport } from '../observability/health.ts';
import { renderHealth } from './health.ts';

const V3 = 'application/vnd.spring-boot.actuator.v3+json';
const V2 = 'application/vnd.spring-boot.actuator.v2+json';
const render = (report: HealthReport, type: typeof V2 | typeof V3 = V3) =>
  JSON.parse(renderHealth(report, type).toString());

test('components under version 3, details under version 2, neither without checks', () => {
  const report: HealthReport = {
    status: 'DOWN',
    components: { db: { status: 'UP' }, 'my "own"': { status: 'DOWN', details: { code: 3 } } },
  };
  assert.deepEqual(render(report), report);
  assert.deepEqual(render(report, V2), { status: 'DOWN', details: report.components });
  assert.deepEqual(render({ status: 'UP', components: {} }), { status: 'UP' });
});

test('details that JSON cannot hold cost only themselves', () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  for (const details of [{ big: 1n }, cycle]) {
    assert.deepEqual(
      render({ status: 'UP', components: { bad: { status: 'UP', details }, good: { status: 'UP' } } }),
      {
        status: 'UP',
        components: {
          bad: { status: 'UP', details: { error: 'the details cannot be written as JSON' } },
          good: { status: 'UP' },
        },
      },
    );
  }
});

test('the reason of a failure shows no password', () => {
  const details = { error: 'Error: connect postgres://u:geheim@h/d', tried: ['redis://u:geheim@h'] };
  const text = renderHealth(
    { status: 'DOWN', components: { db: { status: 'DOWN', details } } },
    V3,
  ).toString();
  assert.doesNotMatch(text, /geheim/);
  assert.match(text, /\*{6}@h\/d/);
});

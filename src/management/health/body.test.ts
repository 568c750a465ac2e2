import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HealthResult } from '../../observability/health/health.ts';
import { healthBody } from './body.ts';

const V3 = 'application/vnd.spring-boot.actuator.v3+json';
const V2 = 'application/vnd.spring-boot.actuator.v2+json';

const NONE = { texts: [] };

const text = (result: HealthResult, type: typeof V2 | typeof V3 = V3) =>
  healthBody(result, { type, shown: true, secrets: NONE }).toString();
const render = (result: HealthResult, type?: typeof V2) => JSON.parse(text(result, type));

test('components under version 3, details under version 2, neither without checks', () => {
  const nested: HealthResult = {
    status: 'DOWN',
    components: { c: { status: 'DOWN', details: { code: 3 } } },
  };
  const report: HealthResult = { status: 'DOWN', components: { db: { status: 'UP' }, 'my "own"': nested } };
  assert.deepEqual(render(report), report);
  assert.deepEqual(render(report, V2), {
    status: 'DOWN',
    details: {
      db: { status: 'UP' },
      'my "own"': { status: 'DOWN', details: { c: { status: 'DOWN', details: { code: 3 } } } },
    },
  });
  assert.equal(text({ status: 'UP', components: {} }), '{"status":"UP"}');
});

test('empty details are left out', () => {
  assert.equal(text({ status: 'UP', details: {} }), '{"status":"UP"}');
  assert.equal(text({ status: 'UP', details: { gone: undefined } }), '{"status":"UP"}');
});

test('details beside components have a place in version 3 only', () => {
  const whole: HealthResult = {
    status: 'UP',
    details: { critical: false },
    components: { a: { status: 'UP' } },
  };
  assert.deepEqual(render(whole), whole);
  assert.deepEqual(render(whole, V2), { status: 'UP', details: { a: { status: 'UP' } } });
});

test('what is not shown is not there', () => {
  const report: HealthResult = { status: 'UP', components: { db: { status: 'UP' } }, details: { a: 1 } };
  const hidden = healthBody(report, { type: V3, shown: false, secrets: NONE, groups: ['a', 'b'] });
  assert.equal(hidden.toString(), '{"status":"UP","groups":["a","b"]}');
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
  const shown = text({ status: 'DOWN', components: { db: { status: 'DOWN', details } } });
  assert.doesNotMatch(shown, /geheim/);
  assert.match(shown, /\*{6}@h\/d/);
});

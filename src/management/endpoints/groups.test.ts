import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { KnownSecrets } from '../../core/redaction.ts';
import type { HealthResult } from '../../telemetry/health.ts';
import type { HealthGroupOptions } from '../config.ts';
import { ManagementOptionsError } from '../management-errors.ts';
import { cachedHealthReply, healthBody, healthGroups } from './health.ts';

describe('body', () => {
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
});

describe('groups', () => {
  const CHECKS = ['db', 'writer', 'mine'];

  function groupsOf(
    groups: Readonly<Record<string, HealthGroupOptions>>,
    checks: readonly string[] = CHECKS,
  ) {
    return Object.fromEntries(healthGroups(checks, new Map(Object.entries(groups)), 'when-authorized'));
  }

  const membersOf = (group: HealthGroupOptions) => groupsOf({ group }).group?.members;

  test('being alive asks nobody else; being ready asks the database where there is one', () => {
    const shown = { showDetails: 'when-authorized' };
    assert.deepEqual(groupsOf({}), {
      liveness: { members: ['livenessState'], ...shown },
      readiness: { members: ['db', 'readinessState'], ...shown },
    });
    assert.deepEqual(groupsOf({}, ['mine']).readiness?.members, ['readinessState']);
  });

  test('groups are sorted, and the built-in ones can be replaced', () => {
    const groups = groupsOf({
      zoo: { include: ['mine'], showDetails: 'always' },
      readiness: { include: ['readinessState', 'mine'] },
      ark: { include: ['*'], exclude: ['db'] },
    });
    assert.deepEqual(Object.keys(groups), ['ark', 'liveness', 'readiness', 'zoo']);
    assert.equal(groups.zoo?.showDetails, 'always');
    assert.deepEqual(groups.readiness?.members, ['mine', 'readinessState']);
    assert.deepEqual(groups.ark?.members, ['writer', 'mine']);
  });

  test('a member is what is included and not excluded; * is what /health shows', () => {
    const names = fc.subarray(['*', 'livenessState', ...CHECKS]);
    fc.assert(
      fc.property(names, names, (include, exclude) => {
        const within = (list: readonly string[], name: string) =>
          list.includes(name) || (list.includes('*') && CHECKS.includes(name));
        const expected = [...CHECKS, 'livenessState'].filter(
          (name) => within(include, name) && !within(exclude, name),
        );
        if (expected.length === 0) {
          assert.throws(() => membersOf({ include, exclude }), /"group" has no checks/);
        } else assert.deepEqual(membersOf({ include, exclude }), expected);
      }),
    );
  });

  test('a group that cannot be made stops the start', () => {
    const wrong: readonly (readonly [Readonly<Record<string, HealthGroupOptions>>, RegExp])[] = [
      [
        { ops: { include: ['db', 'disk'] } },
        /"ops" names "disk", .* There are db, writer, mine, livenessState/,
      ],
      [{ ops: { include: ['*'], exclude: ['disk'] } }, /"ops" names "disk"/],
      [{ db: { include: ['mine'] } }, /"db" has the name of a health check/],
      [{ readinessState: { include: ['mine'] } }, /has the name of a health check/],
      [{ ops: { include: [] } }, /"ops" has no checks/],
    ];
    for (const [groups, message] of wrong) {
      assert.throws(
        () => groupsOf(groups),
        (error: unknown) => error instanceof ManagementOptionsError && message.test(error.message),
        String(message),
      );
    }
  });
});

describe('health reply', () => {
  const V2 = 'application/vnd.spring-boot.actuator.v2+json';

  test('a reply is kept while result, Accept header and known secrets are the same', () => {
    const secrets = new KnownSecrets([]);
    const reply = cachedHealthReply({ shown: true, groups: ['ops'], secrets });
    const up: HealthResult = {
      status: 'UP',
      components: { a: { status: 'UP', details: { x: 'canary-1' } } },
    };
    const first = reply(up, undefined);
    assert.equal(
      first.body,
      '{"status":"UP","components":{"a":{"status":"UP","details":{"x":"canary-1"}}},"groups":["ops"]}',
    );
    assert.equal(reply(up, undefined), first);
    assert.equal(reply(up, V2).type, V2);
    assert.equal(
      reply(up, V2).body,
      '{"status":"UP","details":{"a":{"status":"UP","details":{"x":"canary-1"}}},"groups":["ops"]}',
    );
    secrets.add(['canary-1']);
    assert.doesNotMatch(String(reply(up, V2).body), /canary/);
    const down = reply({ status: 'DOWN' }, V2);
    assert.equal(down.status, 503);
    assert.equal(down.body, '{"status":"DOWN","groups":["ops"]}');
  });
});

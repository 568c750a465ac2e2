import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { HealthGroupOptions } from '../../config/schema/health-code.ts';
import { ManagementOptionsError } from '../options-error.ts';
import { healthGroups } from './groups.ts';

const CHECKS = ['db', 'writer', 'mine'];

function groupsOf(groups: Readonly<Record<string, HealthGroupOptions>>, checks: readonly string[] = CHECKS) {
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

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseParameter, readEndpoints, readHealthChecks, readHealthGroups } from './config.ts';

describe('custom endpoint', () => {
  function read(value: unknown) {
    const problems: string[] = [];
    const endpoints = readEndpoints({ value, path: 'x: management.endpoints' }, problems);
    return { endpoints, problems };
  }

  const answer = () => '';

  test('an endpoint is read as it is given', () => {
    const given = [
      { id: 'a', read: answer },
      { id: 'b', write: answer, path: 'name' },
      { id: 'c', delete: answer, path: 'name?', query: ['limit', 'since?'] },
      { id: 'd', read: answer, write: answer, delete: answer, query: [], path: undefined },
    ];
    const { endpoints, problems } = read(given);
    assert.deepEqual(problems, []);
    const { path: _path, ...last } = given[3] ?? {};
    assert.deepEqual(endpoints, [...given.slice(0, 3), last]);
  });

  test('what is wrong is listed by its path, and such an endpoint is none', () => {
    const parameter = 'a name of letters, digits and "_", with "?" behind it when it may be left out';
    const where = 'x: management.endpoints';
    const { endpoints, problems } = read([
      { id: 'a', read: 'text', write: null, delete: {} },
      { id: 'b' },
      { id: 'c', read: answer, path: 'a/b' },
      { id: 'd', read: answer, path: '' },
      { id: 'e', read: answer, path: ['name'] },
      { id: 'f', read: answer, query: 'limit' },
      { id: 'g', read: answer, query: ['limit', 'limit?'] },
      { id: 'h', read: answer, query: new Array(1) },
      { id: 'i', read: answer, query: ['a-b'] },
      { id: 'j', raed: answer },
      { id: 'fine', read: answer },
    ]);
    assert.deepEqual(problems, [
      `${where}[0].read must be a function`,
      `${where}[0].write must be a function`,
      `${where}[0].delete must be a function`,
      `${where}[1] must have at least one of read, write, delete`,
      ...[2, 3, 4].map((i) => `${where}[${i}].path must be ${parameter}`),
      ...[5, 6, 7, 8].map(
        (i) => `${where}[${i}].query must be an array, each item ${parameter}, and no name twice`,
      ),
      `${where}[9] has an unknown key "raed"; did you mean read?`,
      `${where}[9] must have at least one of read, write, delete`,
    ]);
    assert.deepEqual(
      endpoints.map(({ id }) => id),
      ['fine'],
    );
  });

  test('a parameter is a name with or without a question mark', () => {
    assert.deepEqual(parseParameter('name'), { name: 'name', optional: false });
    assert.deepEqual(parseParameter('a_1?'), { name: 'a_1', optional: true });
    for (const text of [
      '',
      '?',
      'a??',
      '1a',
      '_a',
      '__proto__',
      'a b',
      'a:b',
      ' a',
      'a\n',
      1,
      null,
      undefined,
    ]) {
      assert.equal(parseParameter(text), undefined, String(text));
    }
  });
});

describe('health code', () => {
  const CHECKS = 'm: management.healthChecks';
  const GROUPS = 'm: management.healthGroups';
  const fn = () => 0;

  function checksOf(value: unknown) {
    const problems: string[] = [];
    return { read: [...readHealthChecks({ value, path: CHECKS }, problems)], problems };
  }

  function groupsOf(value: unknown, checks: unknown = { disk: fn }) {
    const problems: string[] = [];
    const read = readHealthGroups({ value, path: GROUPS }, { value: checks, path: CHECKS }, problems);
    return { read: [...read], problems };
  }

  test('a check is a function, or an object with one and how it is run', () => {
    const full = { check: fn, timeout: 1_000, ttl: 0, critical: false };
    assert.deepEqual(checksOf({ plain: fn, full, bare: { check: fn, ttl: undefined } }), {
      read: [
        ['plain', { check: fn }],
        ['full', full],
        ['bare', { check: fn }],
      ],
      problems: [],
    });
    assert.deepEqual(checksOf(undefined), { read: [], problems: [] });
  });

  test('what is wrong with a check is said by its path, and the check is left out', () => {
    const { read, problems } = checksOf({
      nothing: {},
      number: 1,
      list: [fn],
      early: { check: fn, timeout: 0 },
      late: { check: fn, timeout: 86_400_001 },
      half: { check: fn, timeout: 0.5, ttl: -1 },
      text: { check: 'df', ttl: '1s', critical: 'no' },
      other: { check: fn, tll: 5 },
      'a b': fn,
      diskSpace: fn,
      readiness: fn,
      livenessState: fn,
      good: fn,
    });
    const timeout = 'must be a whole number from 1 to 86400000 (milliseconds)';
    const ttl = 'must be a whole number from 0 to 86400000 (milliseconds)';
    const either = 'must be a function, or an object with a function as its "check"';
    assert.deepEqual(problems, [
      `${CHECKS}.nothing.check must be a function`,
      `${CHECKS}.number ${either}`,
      `${CHECKS}.list ${either}`,
      `${CHECKS}.early.timeout ${timeout}`,
      `${CHECKS}.late.timeout ${timeout}`,
      `${CHECKS}.half.timeout ${timeout}`,
      `${CHECKS}.half.ttl ${ttl}`,
      `${CHECKS}.text.check must be a function`,
      `${CHECKS}.text.ttl ${ttl}`,
      `${CHECKS}.text.critical must be true or false`,
      `${CHECKS}.other has an unknown key "tll"; did you mean ttl?`,
      `${CHECKS}["a b"] must have a name of letters, digits, ".", "_" and "-"`,
      `${CHECKS}.diskSpace has a name that Portico uses itself; rename it`,
      `${CHECKS}.readiness has a name that Portico uses itself; rename it`,
      `${CHECKS}.livenessState has a name that Portico uses itself; rename it`,
    ]);
    assert.deepEqual(read, [['good', { check: fn }]]);
  });

  test('a group names checks: its own, built-in ones, the states of the process, or *', () => {
    const groups = {
      one: { include: ['disk', 'db', 'readinessState'], showDetails: 'always' },
      readiness: { include: ['*'], exclude: ['webhookBacklog', 'disk'] },
    };
    assert.deepEqual(groupsOf(groups), { read: Object.entries(groups), problems: [] });
    assert.deepEqual(groupsOf(undefined), { read: [], problems: [] });
  });

  test('what is wrong with a group is said by its path, and the group is left out', () => {
    const { read, problems } = groupsOf({
      empty: {},
      none: { include: [] },
      text: { include: 'disk', exclude: 'db' },
      typo: { include: ['dsik', 'writer'], exclude: ['nothing', 1] },
      holes: { include: new Array(1) },
      other: { include: ['db'], includes: [] },
      shown: { include: ['db'], showDetails: 'sometimes' },
      list: [],
      disk: { include: ['db'] },
      db: { include: ['disk'] },
      'a b': { include: ['db'] },
      good: { include: ['db'] },
    });
    const include = 'must be an array of health checks, at least one';
    assert.deepEqual(problems, [
      `${GROUPS}.empty.include ${include}`,
      `${GROUPS}.none.include ${include}`,
      `${GROUPS}.text.include ${include}`,
      `${GROUPS}.text.exclude must be an array of health checks`,
      `${GROUPS}.typo.include[0] "dsik" is no health check; did you mean disk?`,
      `${GROUPS}.typo.exclude[0] "nothing" is no health check`,
      `${GROUPS}.typo.exclude[1] 1 is no health check`,
      `${GROUPS}.holes.include[0] undefined is no health check`,
      `${GROUPS}.other has an unknown key "includes"; did you mean include?`,
      `${GROUPS}.shown.showDetails must be one of never, when-authorized, always`,
      `${GROUPS}.list must be an object with include`,
      `${GROUPS}.disk has the name of a health check; rename one of them`,
      `${GROUPS}.db has the name of a health check; rename one of them`,
      `${GROUPS}["a b"] must have a name of letters, digits, ".", "_" and "-"`,
    ]);
    assert.deepEqual(read, [['good', { include: ['db'] }]]);
  });

  test('a check that has a problem of its own can be a member all the same', () => {
    assert.deepEqual(groupsOf({ ops: { include: ['disk'] } }, { disk: 1 }).problems, []);
  });

  test('the containers must be objects', () => {
    assert.deepEqual(checksOf([fn]).problems, [`${CHECKS} must be an object of checks by name`]);
    assert.deepEqual(groupsOf('ops').problems, [`${GROUPS} must be an object of groups by name`]);
  });
});

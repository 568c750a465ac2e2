import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { SecretResolver } from '../config/secrets.ts';
import { readApiTokens } from './open-policy.ts';

const SECRET = 'a-secret-of-the-tests';
const resolve: SecretResolver = {
  env: (name) => (name === 'CI_TOKEN' ? SECRET : undefined),
  file: (at, path) =>
    path === 'token' ? { text: SECRET, path: '/run/token' } : { problem: `${at} names no file` },
};

const SCOPES = ['users:read', 'users:write', 'orders:read'];

function read(value: unknown) {
  const problems: string[] = [];
  const { tokens, files } = readApiTokens(
    value,
    { path: 'f: api.tokens', resolve, scopes: SCOPES },
    problems,
  );
  return { tokens, files, problems };
}

test('a secret is a text, or in a variable or a file; several are one token', () => {
  for (const [secret, files] of [
    [SECRET, []],
    [{ env: 'CI_TOKEN' }, []],
    [{ file: 'token' }, ['/run/token']],
  ] as const) {
    const found = read({ ci: { secret, scopes: ['users:read'], expires: '2027-01-31T12:00:00Z' } });
    assert.deepEqual(found.problems, []);
    assert.deepEqual(found.files, files);
    assert.deepEqual(found.tokens, [
      {
        name: 'ci',
        secrets: [SECRET],
        scopes: new Set(['users:read']),
        expiresAt: Date.UTC(2027, 0, 31, 12),
      },
    ]);
  }
  const both = read({ ci: { secret: [SECRET, 'another-secret-of-it'], scopes: [] } });
  assert.deepEqual(both.tokens[0]?.secrets, [SECRET, 'another-secret-of-it']);
});

test('each mistake has its line, and no line has a secret', () => {
  for (const [value, line] of [
    [[], 'f: api.tokens must be an object of tokens by name'],
    [{ CI: { secret: SECRET, scopes: [] } }, 'f: api.tokens.CI must have a name of lower-case letters'],
    [{ ci: { scopes: [] } }, 'f: api.tokens.ci.secret must be a secret'],
    [{ ci: { secret: SECRET } }, 'f: api.tokens.ci.scopes must be an array of scopes'],
    [{ ci: { secret: SECRET, scopes: ['a b'] } }, 'f: api.tokens.ci.scopes must be an array of scopes'],
    [
      { ci: { secret: SECRET, scopes: ['orders:read', 'users:wirte'] } },
      'f: api.tokens.ci.scopes names users:wirte, which is no scope (there are users:read, users:write, orders:read; API_SCOPES adds your own); did you mean users:write?',
    ],
    [
      { ci: { secret: SECRET, scopes: [], expires: '2027-02-31' } },
      'f: api.tokens.ci.expires must be a date',
    ],
    [{ ci: { secret: SECRET, scopes: [], expires: 'soon' } }, 'f: api.tokens.ci.expires must be a date'],
    [{ ci: { secret: 'too-short', scopes: [] } }, 'f: api.tokens.ci.secret must have at least 16'],
    [{ ci: { secret: 'with spaces in the text', scopes: [] } }, 'f: api.tokens.ci.secret must have at least'],
    [{ ci: { secret: { env: 'NONE' }, scopes: [] } }, 'NONE, which is not set'],
    [{ ci: { secret: { file: 'x' }, scopes: [] } }, 'f: api.tokens.ci.secret names no file'],
    [{ ci: { secret: SECRET, scopes: [], scope: 'x' } }, 'unknown key "scope"; did you mean scopes?'],
    [
      { a: { secret: SECRET, scopes: [] }, b: { secret: SECRET, scopes: [] } },
      'f: api.tokens.b has the same secret as f: api.tokens.a',
    ],
  ] as const) {
    const { problems } = read(value);
    assert.equal(problems.length, 1, JSON.stringify(value));
    assert.ok(problems[0]?.includes(line), `${problems[0]}\n${line}`);
    assert.doesNotMatch(problems.join(), /a-secret|too-short|with spaces/);
  }
});

test('nothing that is written there makes the reader throw', () => {
  const value = fc.dictionary(
    fc.string(),
    fc.oneof(
      fc.anything(),
      fc.record({ secret: fc.anything(), scopes: fc.anything(), expires: fc.anything() }),
    ),
  );
  fc.assert(fc.property(fc.oneof(fc.anything(), value), (given) => void read(given)));
});

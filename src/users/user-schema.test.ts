import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { MAX_EMAIL, MAX_NAME, readNewUser } from './new-user.ts';
import { newUserSchema } from './user-schema.ts';

const accepts = new Ajv2020().compile(newUserSchema);

const piece = fc.constantFrom('a', ' ', '@', '\0', '\ud800', '\udc00', 'é', '\n', '\u3000', '');
const text = fc.oneof(
  fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join('')),
  fc.constantFrom(MAX_NAME, MAX_NAME + 1, MAX_EMAIL, MAX_EMAIL + 1).map((length) => 'n'.repeat(length)),
  fc.constantFrom(MAX_EMAIL, MAX_EMAIL + 1).map((length) => `@${'n'.repeat(length)}`.slice(0, length)),
  fc.constantFrom(MAX_EMAIL, MAX_EMAIL + 1).map((length) => `n@${'n'.repeat(length)}`.slice(0, length)),
);
const value = fc.oneof({ weight: 5, arbitrary: text }, fc.constantFrom(null, 7, {}, undefined));
const body = fc.oneof(
  { weight: 9, arbitrary: fc.record({ name: value, email: value }, { requiredKeys: [] }) },
  fc.constantFrom(null, 7, 'x', []),
);

test('the schema takes what the reader takes', () => {
  let taken = 0;
  fc.assert(
    fc.property(body, (given) => {
      // What JSON can say.
      const json: unknown = JSON.parse(JSON.stringify(given));
      const isUser = readNewUser(json) !== undefined;
      taken += isUser ? 1 : 0;
      // A surrogate pair is one character to a schema, and two code units to the reader.
      assert.equal(accepts(json), isUser, JSON.stringify(json));
    }),
    { numRuns: 5_000 },
  );
  assert.ok(taken > 50, `${taken} were users`);
});

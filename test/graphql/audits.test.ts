import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { serverAudits } from 'graphql-http';
import { type GraphqlDoor, openDoor } from './support/door.ts';

describe('the audits of GraphQL over HTTP', () => {
  let door: GraphqlDoor;
  const audits = serverAudits({ url: () => door.url });

  before(async () => {
    door = await openDoor();
  });
  after(() => door[Symbol.asyncDispose]());

  test('there are 61', () => {
    assert.equal(audits.length, 61);
    assert.equal(new Set(audits.map(({ id }) => id)).size, 61);
  });

  // A remembered document is answered on a shorter way than a new one.
  for (const time of ['a first', 'a second', 'a third']) {
    describe(`${time} time`, () => {
      for (const { id, name, fn } of audits) {
        test(`${id} ${name}`, async () => {
          const result = await fn();
          if (result.status !== 'ok') assert.fail(`${result.status}: ${result.reason}`);
        });
      }
    });
  }
});

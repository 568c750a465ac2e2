import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeUnfinished } from './service.ts';

test('what is unfinished is counted by kind and named', () => {
  const requests = new Map([
    ['rest', 2],
    ['graphql', 1],
    ['webhook', 0],
  ] as const);
  const jobs = new Map([
    ['handler:slow', 1],
    ['handler:idle', 0],
    ['forward:billing', 3],
  ]);
  assert.equal(
    describeUnfinished({ requests, jobs }),
    '3 requests: rest, graphql; 1 handler: slow; 3 forwards: billing',
  );
  assert.equal(describeUnfinished({ requests: new Map(), jobs: new Map([['handler:x', 0]]) }), '');
});

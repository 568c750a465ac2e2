import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pace } from './pace.ts';

test('as many jobs are claimed ahead as ended in the last 50 ms, at most 128', () => {
  const pace = new Pace();
  assert.equal(pace.ahead(1_000), 0);
  for (let i = 0; i < 30; i++) pace.note(1_000 + i);
  assert.equal(pace.ahead(1_040), 30);
  assert.equal(pace.ahead(1_060), 30, 'those of the time before');
  for (let i = 0; i < 400; i++) pace.note(1_070);
  assert.equal(pace.ahead(1_075), 128);
});

test('nothing is claimed ahead once the handlers have become slow', () => {
  const pace = new Pace();
  for (let i = 0; i < 100; i++) pace.note(1_000);
  assert.equal(pace.ahead(1_200), 0);
  pace.note(1_300);
  assert.equal(pace.ahead(1_301), 1);
});

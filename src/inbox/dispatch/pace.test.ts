import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pace } from './pace.ts';

test('as many jobs are claimed ahead as ended in the last 200 ms, at most 256', () => {
  const pace = new Pace();
  assert.equal(pace.ahead(1_000), 0);
  for (let i = 0; i < 30; i++) pace.note(1_000 + i);
  assert.equal(pace.ahead(1_190), 30);
  assert.equal(pace.ahead(1_210), 30, 'those of the time before');
  for (let i = 0; i < 400; i++) pace.note(1_220);
  assert.equal(pace.ahead(1_230), 256);
});

test('nothing is claimed ahead once the handlers have become slow', () => {
  const pace = new Pace();
  for (let i = 0; i < 100; i++) pace.note(1_000);
  assert.equal(pace.ahead(1_500), 0);
  pace.note(1_600);
  assert.equal(pace.ahead(1_601), 1);
});

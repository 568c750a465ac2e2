import assert from 'node:assert/strict';
import { test } from 'node:test';
import { help } from '../help.ts';
import { usages } from './usages.ts';

test('a command is described with its options, a part of one alone', () => {
  const all = help(['deliveries'], 100);
  for (const { topic, options } of [usages.list, usages.show, usages.tail, usages.replay, usages.discard]) {
    assert.ok(all.includes(`Usage: portico ${topic} `), topic);
    const alone = help(topic.split(' '), 100);
    assert.equal(alone.split('Usage: ').length, 2);
    for (const { flag } of options) assert.ok(alone.includes(`\n  ${flag} `), `${topic} ${flag}`);
  }
  const send = help(['send', 'anything'], 100);
  for (const { flag } of usages.send.options) assert.ok(send.includes(`\n  ${flag} `), flag);
  for (const usage of [usages.migrate, usages.move]) {
    const page = help([usage.topic], 100);
    for (const { flag } of usage.options) assert.ok(page.includes(`\n  ${flag} `), flag);
  }
});

test('no line is longer than the terminal is wide, but for examples', () => {
  for (const columns of [72, 80, 100]) {
    for (const words of [['deliveries'], ['send'], ['hash-password'], ['migrate'], ['move']]) {
      for (const line of help(words, columns).split('\n')) {
        if (!line.startsWith('  Try: ')) assert.ok(line.length <= columns, `${columns}: ${line}`);
      }
    }
  }
});

test('everything else is the general help, and an unknown command a problem', () => {
  for (const words of [[], ['serve'], ['version'], ['help']]) {
    assert.match(help(words, 80), /^Usage: portico \[command\]/, words.join());
  }
  assert.match(help(['send'], 80), /^Usage: portico send /);
  assert.throws(() => help(['sned'], 80), /"sned" is not a command; did you mean send\?/);
});

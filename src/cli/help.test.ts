import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { flagOf } from '../config/options/option.ts';
import { optionKeys, optionOf } from '../config/options/options.ts';
import { schemeNames } from '../config/schema/webhook.ts';
import { defaultLayout } from '../signatures/sources.ts';
import { commands } from './command-line.ts';
import { help } from './help.ts';
import { usages } from './usages.ts';

describe('command help', () => {
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
});

describe('service help', () => {
  const renderHelp = (columns: number) => help([], columns);

  test('help names every command and every option once, with variable, description and default', () => {
    const help = renderHelp(80);
    const rows = help.split('\n');
    for (const { name } of commands)
      assert.equal(rows.filter((row) => row.startsWith(`  ${name} `)).length, 1, name);
    const flat = help.replace(/\s+/g, ' ');
    for (const key of optionKeys) {
      const { env, description, secret, default: value } = optionOf(key);
      const [row, ...more] = rows.flatMap((line, i) => (line.startsWith(`  ${flagOf(key)} <`) ? [i] : []));
      assert.ok(row !== undefined && more.length === 0, key);
      const variable = secret ? ` ${env}[_FILE]` : ` ${env}`;
      assert.ok(rows[row]?.endsWith(variable) || rows[row + 1]?.endsWith(variable), key);
      const shown =
        value === undefined ? 'unset: ' : `default: ${Array.isArray(value) ? value.join(',') : value}`;
      assert.ok(flat.includes(`${description} [${shown}`), key);
    }
    assert.ok(rows.some((row) => row.startsWith('  --config <file> ')));
  });

  test('help lists the renamed events of each scheme', () => {
    const flat = renderHelp(80).replace(/\s+/g, ' ');
    for (const scheme of schemeNames) {
      for (const [own, event] of defaultLayout(scheme).events) {
        assert.match(flat, new RegExp(` ${scheme} [^;]*${own}[^;]* (?:is|are) ${event} `));
      }
    }
    assert.match(flat, / github push is new_commit /);
  });

  test('options stand under their door', () => {
    const help = renderHelp(80);
    const order = ['All doors', '--host', 'GraphQL', '--graphql-port', 'REST', '--rest-port', 'Management'];
    const places = [...order, '--management-role', 'Webhooks', '--webhook-secret'].map((text) =>
      help.indexOf(text.startsWith('--') ? `  ${text} ` : `\n${text}\n`),
    );
    assert.ok(places.every((place) => place > 0));
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
  });

  test('variables stand in one column', () => {
    const columns = renderHelp(100)
      .split('\n')
      .flatMap((row, i, rows) => {
        if (!row.startsWith('  --')) return [];
        const place = row.search(/ [A-Z]/);
        return [place === -1 ? (rows[i + 1]?.search(/ [A-Z]/) ?? -1) : place];
      });
    assert.equal(columns.length, optionKeys.length + 1);
    assert.equal(new Set(columns).size, 1);
  });

  test('no line is longer than the terminal is wide', () => {
    for (const width of [72, 80, 91, 100]) {
      for (const line of renderHelp(width).split('\n')) assert.ok(line.length <= width, `${width}: ${line}`);
    }
    assert.equal(renderHelp(400), renderHelp(100));
    assert.equal(renderHelp(1), renderHelp(72));
    assert.equal(renderHelp(Number.NaN), renderHelp(80));
  });
});

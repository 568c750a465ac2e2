import assert from 'node:assert/strict';
import { Readable, Writable } from 'node:stream';
import { describe, test } from 'node:test';
import { flagOf } from '../config/options/option.ts';
import { optionKeys, optionOf } from '../config/options/options.ts';
import { main } from '../main.ts';
import { schemeNames } from '../signatures/config.ts';
import { defaultLayout } from '../signatures/sources.ts';
import { commands } from './command-line.ts';

/** What `portico help` and these words print on a terminal of this width. */
async function help(words: readonly string[], columns: number): Promise<string> {
  let text = '';
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  const io = {
    stdin: Readable.from([]),
    stderr: stdout,
    env: { NO_COLOR: '1' },
    on: () => {},
    off: () => {},
  };
  const exit = (code: number): never => assert.fail(`the command ended with ${code}`);
  assert.equal(
    await main(['help', ...words], { ...io, exit, stdout: Object.assign(stdout, { columns }) }),
    0,
  );
  return text;
}

describe('command help', () => {
  test('a command is described with its options, a subcommand alone', async () => {
    for (const { name, load, parts = {} } of commands) {
      const all = await help([name], 100);
      for (const [topic, command] of [
        ...(load === undefined ? [] : [[name, load] as const]),
        ...Object.entries(parts).map(([part, load]) => [`${name} ${part}`, load] as const),
      ]) {
        const { options } = (await command()).usage;
        const alone = await help(topic.split(' '), 100);
        assert.equal(alone.split('Usage: ').length, 2);
        for (const page of [all, alone]) assert.ok(page.includes(`Usage: portico ${topic} `), topic);
        for (const head of Object.keys(options))
          assert.ok(alone.includes(`\n  ${head} `), `${topic} ${head}`);
      }
    }
    assert.equal(await help(['send', 'anything'], 100), await help(['send'], 100));
  });

  test('no line is longer than the terminal is wide, but for examples', async () => {
    for (const columns of [72, 80, 100]) {
      for (const { name } of commands) {
        for (const line of (await help([name], columns)).split('\n')) {
          if (!line.startsWith('  Try: ')) assert.ok(line.length <= columns, `${columns}: ${line}`);
        }
      }
    }
  });
});

describe('general help', () => {
  test('it names every command once and fits on a screen of 80 columns and 24 lines', async () => {
    const general = await help([], 80);
    const rows = general.split('\n');
    for (const { name } of commands)
      assert.equal(rows.filter((row) => row.startsWith(`  ${name} `)).length, 1, name);
    // The last line is the prompt's.
    assert.ok(rows.length <= 24, `${rows.length} lines`);
    assert.match(general, /^Usage: portico \[command\]/);
    assert.doesNotMatch(general, /--/);
  });

  test('commands without options of their own have it too', async () => {
    for (const words of [['version'], ['help']]) assert.equal(await help(words, 80), await help([], 80));
  });
});

describe('service help', () => {
  const renderHelp = (columns: number) => help(['serve'], columns);

  test('it names every option once, with variable, description and default', async () => {
    const help = await renderHelp(80);
    const rows = help.split('\n');
    const flat = help.replace(/\s+/g, ' ');
    for (const key of optionKeys) {
      const { env, help, secret, default: value } = optionOf(key);
      const [row, ...more] = rows.flatMap((line, i) => (line.startsWith(`  ${flagOf(key)} <`) ? [i] : []));
      assert.ok(row !== undefined && more.length === 0, key);
      const variable = secret ? ` ${env}[_FILE]` : ` ${env}`;
      assert.ok(rows[row]?.endsWith(variable) || rows[row + 1]?.endsWith(variable), key);
      const shown =
        value === undefined ? 'unset: ' : `default: ${Array.isArray(value) ? value.join(',') : value}`;
      assert.ok(flat.includes(`${help} [${shown}`), key);
    }
    assert.ok(rows.some((row) => row.startsWith('  --config <file> ')));
  });

  test('it lists the renamed events of each scheme', async () => {
    const flat = (await renderHelp(80)).replace(/\s+/g, ' ');
    for (const scheme of schemeNames) {
      for (const [own, event] of defaultLayout(scheme).events) {
        assert.match(flat, new RegExp(` ${scheme} [^;]*${own}[^;]* (?:is|are) ${event} `));
      }
    }
    assert.match(flat, / github push is new_commit /);
  });

  test('ten options come first, the others stand under their door', async () => {
    const help = await renderHelp(80);
    const order = ['First', '--config', '--host', '--webhook-secret', 'All doors', '--api-rate', 'GraphQL'];
    const more = ['--graphql-port', 'REST', '--rest-port', 'Management', '--management-role', 'Webhooks'];
    const places = [...order, ...more, '--webhook-port'].map((text) =>
      help.indexOf(text.startsWith('--') ? `  ${text} ` : `\n${text}\n`),
    );
    assert.ok(places.every((place) => place > 0));
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
  });

  test('variables stand in one column', async () => {
    const columns = (await renderHelp(100)).split('\n').flatMap((row, i, rows) => {
      if (!row.startsWith('  --')) return [];
      const place = row.search(/ [A-Z]/);
      return [place === -1 ? (rows[i + 1]?.search(/ [A-Z]/) ?? -1) : place];
    });
    assert.equal(columns.length, optionKeys.length + 1);
    assert.equal(new Set(columns).size, 1);
  });

  test('lines are 72 to 100 columns wide, 80 if the width is unknown', async () => {
    for (const width of [72, 91, 100]) {
      for (const line of (await renderHelp(width)).split('\n'))
        assert.ok(line.length <= width, `${width}: ${line}`);
    }
    assert.equal(await renderHelp(400), await renderHelp(100));
    assert.equal(await renderHelp(1), await renderHelp(72));
    assert.equal(await renderHelp(Number.NaN), await renderHelp(80));
  });
});

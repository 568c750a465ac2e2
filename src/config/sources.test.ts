import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { rounds } from '../../test/support/proof-settings.ts';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { expectedPassword } from '../core/passwords.ts';
import { flagOf } from './options/option.ts';
import { optionKeys, optionOf } from './options/options.ts';
import { readEnvironment, readFlags } from './sources.ts';

describe('environment', () => {
  const problems = (env: Record<string, string>, cwd = '/') => readEnvironment(env, cwd).problems;

  test('variables set their options', () => {
    const reading = readEnvironment({ PORT: '1', REST_PORT: '2', HOME: '/x', UNSET: undefined }, '/');
    assert.deepEqual(
      [...reading.found],
      [
        ['rest.port', { value: 2, origin: 'REST_PORT' }],
        ['webhook.port', { value: 1, origin: 'PORT' }],
      ],
    );
    assert.deepEqual(reading.problems, []);
  });

  test('every variable that is wrong has its line', () => {
    assert.deepEqual(problems({ PORT: 'http', LOG_LEVEL: '', WEBHOOK_SECRET: '', MANAGEMENT_EXCLUDE: '' }), [
      'PORT must be a whole number from 0 to 65535, or unix:/path (of a socket, at most 103 bytes), not "http"',
      'WEBHOOK_SECRET is empty; unset it to leave the door unsecured',
      'LOG_LEVEL is empty; unset it for the default (info)',
    ]);
  });

  test('a secret can come from a file, less one newline at its end', async () => {
    await using folder = await temporaryFolder();
    const files = { unix: 's1,s2\n', dos: 'p w\r\n', bare: 'postgres://u:p@h/d', two: 'p\n\n' };
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder.path, name), content);
    const reading = readEnvironment(
      {
        WEBHOOK_SECRET_FILE: join(folder.path, 'unix'),
        MANAGEMENT_PASSWORD_FILE: 'dos',
        DATABASE_URL_FILE: 'bare',
      },
      folder.path,
    );
    assert.deepEqual(reading.problems, []);
    assert.deepEqual(Object.fromEntries([...reading.found].map(([key, { value }]) => [key, value])), {
      'database.url': 'postgres://u:p@h/d',
      'management.password': 'p w',
      'webhook.secret': ['s1', 's2'],
    });
    assert.equal(reading.found.get('webhook.secret')?.origin, 'WEBHOOK_SECRET_FILE');
    assert.deepEqual(problems({ MANAGEMENT_PASSWORD_FILE: 'two' }, folder.path), [
      `the file that MANAGEMENT_PASSWORD_FILE names must be ${expectedPassword}`,
    ]);
  });

  test('a variable and its file together are a problem', () => {
    assert.deepEqual(problems({ WEBHOOK_SECRET: 'a', WEBHOOK_SECRET_FILE: '/x' }), [
      'WEBHOOK_SECRET and WEBHOOK_SECRET_FILE are both set; unset one of them',
    ]);
  });

  test('a file that cannot be used is a problem that names it', async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, 'folder'));
    await writeFile(join(folder.path, 'empty'), '\n');
    await writeFile(join(folder.path, 'latin1'), Buffer.from([0x68, 0xfc]));
    const of = (file: string) => problems({ WEBHOOK_SECRET_FILE: file }, folder.path);
    assert.deepEqual(of('gone'), [
      'WEBHOOK_SECRET_FILE names the file "gone", which cannot be read (ENOENT)',
    ]);
    assert.deepEqual(of('folder'), [
      'WEBHOOK_SECRET_FILE names the file "folder", which cannot be read (EISDIR)',
    ]);
    assert.deepEqual(of('latin1'), ['WEBHOOK_SECRET_FILE names the file "latin1", which is not UTF-8 text']);
    assert.deepEqual(of(''), ['WEBHOOK_SECRET_FILE is empty; unset it or name a file']);
    assert.deepEqual(of('empty'), [
      'the file that WEBHOOK_SECRET_FILE names is empty; unset WEBHOOK_SECRET_FILE to leave the door unsecured',
    ]);
  });

  test('only secrets can come from a file', () => {
    const reading = readEnvironment({ REST_PORT_FILE: '/nowhere' }, '/');
    assert.deepEqual([reading.found.size, reading.problems.length], [0, 0]);
  });

  test('a variable that was renamed has its line', () => {
    assert.deepEqual(problems({ MANAGEMENT_TRUST_FORWARDED: 'true' }), [
      'MANAGEMENT_TRUST_FORWARDED is not read any more; did you mean TRUST_PROXY?',
    ]);
    assert.deepEqual(problems({ MANAGEMENT_CONSOLE_HOSTS: 'ops.example' }), [
      'MANAGEMENT_CONSOLE_HOSTS is not read any more; did you mean HTTP_HOSTS?',
    ]);
  });
});

describe('flags', () => {
  const values = (argv: readonly string[]) =>
    Object.fromEntries([...readFlags(argv).found].map(([key, { value }]) => [key, value]));
  const problems = (argv: readonly string[]) => readFlags(argv).problems;

  test('a value stands behind its flag or behind "="', () => {
    const argv = [
      '--rest-port',
      '9000',
      '--management-base-path=/ops',
      '--profiles',
      'a,b',
      '--webhook-secret=x=y',
    ];
    assert.deepEqual(values(argv), {
      'rest.port': 9000,
      'management.basePath': '/ops',
      profiles: ['a', 'b'],
      'webhook.secret': ['x=y'],
    });
    assert.deepEqual(problems(argv), []);
    assert.equal(readFlags(argv).found.get('rest.port')?.origin, '--rest-port');
  });

  test('--config names the module', () => {
    assert.equal(readFlags(['--config', 'a.ts']).module, 'a.ts');
    assert.equal(readFlags(['--config=b.ts']).module, 'b.ts');
    assert.deepEqual(problems(['--config=']), ['--config is empty; leave it out or name a file']);
    assert.deepEqual(problems(['--config', 'a', '--config', 'b']), ['--config is given more than once']);
  });

  test('an unknown flag is a problem, with what is probably meant, and its value is not read', () => {
    assert.deepEqual(problems(['--rest-prot', '9000', '--host=::1']), [
      '"--rest-prot" is not an option; did you mean --rest-port?',
    ]);
    assert.deepEqual(problems(['--verbose']), ['"--verbose" is not an option']);
    assert.deepEqual(problems(['-p', '1']), ['"-p" is not an option']);
    assert.deepEqual(problems(['--']), ['"--" is not an option']);
  });

  test('several unknown flags in a row are all reported', () => {
    assert.equal(problems(['--nothing', '--nought=1', '--nowhere']).length, 3);
  });

  test('a repeated flag is a problem even with the same value', () => {
    assert.deepEqual(problems(['--rest-port=1', '--rest-port', '1']), [
      '--rest-port is given more than once',
    ]);
    assert.ok(readFlags(['--rest-port=1', '--rest-port=1']).broken.has('rest.port'));
  });

  test('a flag without a value is a problem, and the flag behind it is still read', () => {
    const reading = readFlags(['--host', '--rest-port', '1', '--log-level']);
    assert.deepEqual(reading.problems, [
      '--host needs a value; write --host=<value> for one that begins with "-"',
      '--log-level needs a value; write --log-level=<value> for one that begins with "-"',
    ]);
    assert.equal(reading.found.get('rest.port')?.value, 1);
  });

  test('an empty value is a problem for all but lists', () => {
    assert.deepEqual(problems(['--rest-port=']), [
      '--rest-port is empty; leave it out for the default (8000)',
    ]);
    assert.deepEqual(problems(['--management-user', ' ']), ['--management-user is empty; leave it out']);
    assert.deepEqual(problems(['--webhook-secret=']), [
      '--webhook-secret is empty; leave it out to leave the door unsecured',
    ]);
    assert.deepEqual(values(['--profiles=', '--management-include', '']), {
      profiles: [],
      'management.include': [],
    });
  });

  test('a stray word is a problem and shown only where it cannot be part of a secret', () => {
    assert.deepEqual(problems(['now']), ['"now" is not expected; an option begins with "--"']);
    const [problem = ''] = problems(['--webhook-secret', 'correct', 'horse']);
    assert.match(problem, /after "--webhook-secret"/);
    assert.doesNotMatch(problem, /horse/);
  });

  test('behind the flag of a secret every word but a real flag belongs to it', () => {
    assert.deepEqual(problems(['--webhook-secret', '--correct-horse', '--log-level=debug']), [
      '--webhook-secret needs a value; write --webhook-secret=<value> for one that begins with "-"',
    ]);
    assert.deepEqual(values(['--webhook-secret=--correct-horse']), { 'webhook.secret': ['--correct-horse'] });
    const [, problem = ''] = problems(['--webhook-secret', 'a,', '-Horse', '-Battery=1']);
    assert.doesNotMatch(problem, /Horse|Battery/);
  });

  test('a value that is refused is shown, unless it is a secret', () => {
    assert.deepEqual(problems(['--rest-port=http']), [
      '--rest-port must be a whole number from 0 to 65535, or unix:/path (of a socket, at most 103 bytes), not "http"',
    ]);
    const [problem = ''] = problems(['--database-url=mysql://root:hunter2@db/x']);
    assert.match(problem, /^--database-url must be sqlite:/);
    assert.doesNotMatch(problem, /hunter2|mysql/);
  });

  test('--no-migrate stands for an option with its value', () => {
    assert.deepEqual(values(['--no-migrate', '--rest-port', '1']), {
      'database.migrate': false,
      'rest.port': 1,
    });
    assert.deepEqual(problems(['--no-migrat']), [
      '"--no-migrat" is not an option; did you mean --no-migrate?',
    ]);
    assert.deepEqual(problems(['--no-migrate=1']), ['--no-migrate takes no value']);
    assert.deepEqual(problems(['--no-migrate', '--database-migrate=true']), [
      '--database-migrate is given more than once',
    ]);
  });

  test('the value of a misspelled option is not shown, whatever it looks like', () => {
    for (const argv of [
      ['--webhok-secret', '--canary'],
      ['--webhok-secret=canary'],
      ['--webhok-secret', 'canary', 'Canary'],
    ]) {
      const [problem, ...more] = problems(argv);
      assert.equal(problem, '"--webhok-secret" is not an option; did you mean --webhook-secret?');
      assert.doesNotMatch(more.join(), /canary/i);
    }
  });

  /** Words that may be parts of a secret; those of `torn` directly behind its option only. */
  const part = fc.constantFrom(
    'Canary',
    '-Canary',
    '--Canary',
    '-9Canary=1',
    '--=Canary',
    '--',
    '-',
    '',
    'x=Canary',
  );
  const torn = fc.oneof(part, fc.constantFrom('--canary', '--canary=1', '-c=canary'));
  const secretFlags = optionKeys.filter((key) => optionOf(key).secret).map(flagOf);
  const secret = fc.tuple(fc.constantFrom(...secretFlags), torn, fc.boolean());

  test('no problem shows a part of a secret, wherever it is torn', () => {
    const words = fc.oneof(
      secret.map(([flag, value, inline]) => (inline ? [`${flag}=${value}`] : [flag, value])),
      part.map((text) => [text]),
    );
    fc.assert(
      fc.property(fc.constantFrom(...secretFlags), torn, fc.array(words), (flag, value, more) => {
        assert.doesNotMatch(problems([flag, value, ...more.flat()]).join(), /canary/i);
      }),
      { numRuns: rounds(500) },
    );
  });

  const word = fc.oneof(
    fc.string(),
    fc.constantFrom(
      ...optionKeys.map(flagOf),
      '--config',
      '--',
      '-',
      '',
      '=',
      '--=',
      '--rest-port=',
      '--__proto__',
    ),
    fc.tuple(fc.constantFrom(...optionKeys.map(flagOf)), fc.string()).map((parts) => parts.join('=')),
    fc.string().map((text) => `--${text}`),
  );

  test('no command line makes the reader throw, and every word of it is read or reported', () => {
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), (argv) => {
        const reading = readFlags(argv);
        const outcomes =
          reading.found.size + reading.problems.length + (reading.module === undefined ? 0 : 1);
        // A word and its value are one outcome, so there is at least one for two words.
        assert.ok(outcomes >= Math.ceil(argv.length / 2));
        for (const problem of reading.problems) assert.doesNotMatch(problem, /\n/);
      }),
      { numRuns: rounds(500) },
    );
  });
});

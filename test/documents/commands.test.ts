import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readArguments } from '../../src/cli/arguments.ts';
import { parseCommandLine } from '../../src/cli/command-line.ts';
import { optionKeys, optionOf } from '../../src/config/options/options.ts';
import { readFlags } from '../../src/config/sources.ts';
import { allShownCommands } from '../support/shown-commands.ts';
import { documents, ROOT } from './documents.ts';
import { NOT_RUN } from './not-run.ts';
import { type ShellCommand, shellCommands } from './shell.ts';

/** Programs that are somebody else's; the tests that run them find a wrong option. */
const OTHERS = [
  ...['cd', 'curl', 'echo', 'export', 'for', 'grep', 'mkdir', 'printf', 'tail', 'openssl', 'promtool'],
  ...[
    'createdb',
    'createuser',
    'pg_dump',
    'pg_restore',
    'psql',
    'docker',
    'helm',
    'kubectl',
    'litestream',
    'npx',
    'patronictl',
    'pg_basebackup',
    '/usr/lib/postgresql/15/bin/pg_verifybackup',
    '/usr/lib/postgresql/15/bin/pg_ctl',
    'cp',
    'rm',
    'touch',
    'apt-get',
    'systemctl',
  ],
];

/** Variables that are none of Portico's options. */
const OTHER_VARIABLES =
  /^(?:CONFIG|PATH|NO_COLOR|FORCE_COLOR|OTEL_\w+|NODE_\w+|PGPASSWORD|GITHUB_WEBHOOK_SECRET|PORTICO_\w+)$/;

const shown = allShownCommands();
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};
const variables = optionKeys.flatMap((key) => {
  const { env, secret } = optionOf(key);
  return secret ? [env, `${env}_FILE`] : [env];
});

/** Variables that configurations of the documents read secrets from. */
const secrets = documents().flatMap(({ text }) =>
  [...text.matchAll(/env"?: ['"](\w+)['"]/g)].map(([, name]) => name),
);

/** The words behind `portico`, however it is called; undefined for other programs. */
function porticoWords({ words }: ShellCommand): readonly string[] | undefined {
  const [program, ...rest] = words;
  if (program === 'portico') return rest;
  const line = words.join(' ');
  const call =
    /^(?:npx portico|npm exec -- portico|node (?:dist|node_modules\/portico)\/bin\/portico\.js|npm run (?:-s )?portico --|npm start --)/;
  const found = call.exec(line)?.[0];
  return found === undefined ? undefined : words.slice(found.split(' ').length);
}

/** Reads the words as the command does; rejects with what it would say. */
async function readPortico(argv: readonly string[]): Promise<void> {
  const { command, rest } = parseCommandLine(argv);
  if (command.name === 'serve') {
    const { problems } = readFlags(rest);
    assert.deepEqual(problems, []);
    return;
  }
  // A group is named without one of its commands.
  if (command.parts !== undefined && rest.length === 0) return;
  const [part = '', ...words] = rest;
  const load = command.load ?? command.parts?.[part];
  assert.ok(load !== undefined || command.run !== undefined, part);
  if (load === undefined) return;
  readArguments((await load()).usage, command.load === undefined ? words : rest, { env: {} });
}

async function check(command: ShellCommand): Promise<void> {
  for (const name of Object.keys(command.env)) {
    const isKnown = variables.includes(name) || secrets.includes(name) || OTHER_VARIABLES.test(name);
    assert.ok(isKnown, `${name} is no variable of Portico`);
  }
  const argv = porticoWords(command);
  if (argv !== undefined) await readPortico(argv);
  else checkProgram(command);
}

function checkProgram(command: ShellCommand): void {
  const [program = '', ...rest] = command.words;
  if (program === 'npm') {
    const [verb = '', name = ''] = rest.filter((word) => word !== '-s');
    const isScript = verb === 'run' ? name in scripts : verb in scripts;
    assert.ok(isScript || ['ci', 'install', 'exec', 'test', 'init', 'pack'].includes(verb), command.text);
  } else if (program === 'node') {
    const file = rest.find(
      (word) => /^\w.*\.[cm]?[jt]s$/.test(word) && !word.includes('*') && !word.startsWith('dist/'),
    );
    if (file !== undefined) assert.ok(existsSync(join(ROOT, file)), file);
  } else {
    assert.ok(program === '' || OTHERS.includes(program), `no test knows the program ${program}`);
  }
}

async function checkAll(
  commands: readonly { readonly where: string; readonly command: string }[],
): Promise<void> {
  for (const { where, command } of commands) {
    for (const each of shellCommands(command)) {
      await check(each).catch((error: Error) => {
        assert.fail(`${where}: ${command}\n${error.message}`);
      });
    }
  }
}

test('every command in the documents exists, with its options and variables', async () => {
  assert.ok(shown.length > 80, `${shown.length} commands were found`);
  await checkAll(shown);
});

test('every command in a sentence of the documents exists, with its options', async () => {
  const own = documents().filter(({ path }) => path !== 'CHANGELOG.md');
  const named = own.flatMap(({ path, text }) =>
    [...text.replaceAll(/^ *```.*?^ *```$/gms, '').matchAll(/`((?:portico|npm|npx|node) [^`]+)`/g)].map(
      ([, command = '']) => ({ where: path, command }),
    ),
  );
  assert.ok(named.length > 60, `${named.length} commands were found`);
  await checkAll(named.filter(({ command }) => !command.includes('<command>')));
});

/** What the tests ask for of documents, in the words of their sources. */
const CALL = /\bshownCommands?\(\s*'([^']+)'(?:,\s*\/((?:[^/\\\n]|\\.)+)\/([a-z]*))?,?\s*\)/g;
const asked = globSync('test/**/*.ts', { cwd: ROOT }).flatMap((file) =>
  [...readFileSync(join(ROOT, file), 'utf8').matchAll(CALL)].map(
    ([, path = '', pattern = '(?:)', flags]) => ({ file, path, pattern: new RegExp(pattern, flags) }),
  ),
);

test('every command in the documents is run by a test, or is listed with a reason why not', () => {
  const left = shown.filter(({ path, command }) => {
    const isRun = asked.some((each) => each.path === path && each.pattern.test(command));
    return !isRun && !NOT_RUN.some((each) => each.command.test(command));
  });
  assert.deepEqual(
    left.map(({ where, command }) => `${where}: ${command}`),
    [],
  );
  for (const { command } of NOT_RUN) {
    assert.ok(
      shown.some((each) => command.test(each.command)),
      `no document shows ${command}`,
    );
  }
});

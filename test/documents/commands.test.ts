import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { readArguments } from '../../src/commands/argv/command-arguments.ts';
import { parseCommandLine } from '../../src/commands/argv/command-line.ts';
import type { CommandUsage } from '../../src/commands/help/command-usage.ts';
import { usages } from '../../src/commands/help/usages.ts';
import { optionKeys, optionOf } from '../../src/config/options/options.ts';
import { readFlags } from '../../src/config/sources/flags.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { runPortico } from '../support/portico-command.ts';
import { startPostgres } from '../support/postgres.ts';
import { missingPostgres } from '../support/postgres-binaries.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { blocks, documents, ROOT } from './documents.ts';
import { type ShellCommand, shellCommands } from './shell.ts';

/** The test that runs what a document shows. */
const RUN_BY: Readonly<Record<string, string>> = {
  'README.md': 'test/readme.test.ts',
  'docs/ERRORS.md': 'test/http/problem-details.test.ts',
  'docs/GRAPHQL.md': 'test/graphql/guide.test.ts',
  'docs/REST.md': 'test/rest/guide.test.ts',
  'docs/SECURITY.md': 'test/access/guide.test.ts',
  'docs/DELIVERIES.md': 'test/commands/guide.test.ts',
  'docs/WEBHOOKS.md': 'test/commands/guide.test.ts',
  'examples/graphql-plugin/README.md': 'test/graphql/example.test.ts',
  'examples/management-plugin/README.md': 'test/management/example.test.ts',
  'examples/own-routes/README.md': 'test/http/door-setup.test.ts',
  'examples/own-schema/README.md': 'test/graphql/own-schema.test.ts',
  'examples/rest-plugin/README.md': 'test/rest/example.test.ts',
  'examples/webhook-plugin/README.md': 'test/webhook/example.test.ts',
};

/** Programs that are somebody else's, or need another machine; pg_dump has to be as new as its server. */
const NOT_RUN = [
  'pg_dump',
  'pg_restore',
  'for',
  'printf',
  'tail',
  'docker',
  'helm',
  'kubectl',
  'systemctl',
  'systemd-analyze',
  'zcat',
  'createuser',
  'createdb',
  'litestream',
  'npx',
  'openssl',
  'echo',
  'export',
  'grep',
  'wc',
];

/** Variables that are none of Portico's options. */
const OTHER_VARIABLES =
  /^(?:CONFIG|PATH|NO_COLOR|FORCE_COLOR|OTEL_\w+|NODE_\w+|PGPASSWORD|GITHUB_WEBHOOK_SECRET|PORTICO_\w+)$/;

const shown = blocks('sh', 'console').flatMap(({ path, line, language, text }) => {
  // Of a block with output only the lines with a prompt are commands.
  const script =
    language === 'sh' ? text : [...text.matchAll(/^\$ (.*)$/gm)].map(([, each]) => each).join('\n');
  return shellCommands(script).map((command) => ({ where: `${path}:${line}`, path, ...command }));
});

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
    /^(?:npx portico|npm exec -- portico|node dist\/bin\/portico\.js|npm run (?:-s )?portico --|npm start --)/;
  const found = call.exec(line)?.[0];
  return found === undefined ? undefined : words.slice(found.split(' ').length);
}

/** Reads the words as the command does; throws what it would say. */
function readPortico(argv: readonly string[]): void {
  const { command, rest } = parseCommandLine(argv);
  if (command === 'serve') {
    const { problems } = readFlags(rest);
    assert.deepEqual(problems, []);
  } else if (command !== 'help' && command !== 'version') {
    const [topic, words] = ['deliveries', 'users', 'tokens'].includes(command)
      ? [`${command} ${rest[0]}`, rest.slice(1)]
      : [command, rest];
    const usage = Object.values<CommandUsage>(usages).find((each) => each.topic === topic);
    assert.ok(usage !== undefined, topic);
    readArguments(usage, words);
  }
}

function check(command: ShellCommand): void {
  for (const name of Object.keys(command.env)) {
    const isKnown = variables.includes(name) || secrets.includes(name) || OTHER_VARIABLES.test(name);
    assert.ok(isKnown, `${name} is no variable of Portico`);
  }
  const argv = porticoWords(command);
  if (argv !== undefined) readPortico(argv);
  else checkProgram(command);
}

function checkProgram(command: ShellCommand): void {
  const [program = '', ...rest] = command.words;
  if (program === '' || NOT_RUN.includes(program)) return;
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
    const known = ['curl', 'psql', 'promtool', 'wget', 'cd', 'mkdir'];
    assert.ok(known.includes(program), `no test knows the program ${program}`);
  }
}

test('every command in the documents exists, with its options and variables', () => {
  assert.ok(shown.length > 80, `${shown.length} commands were found`);
  for (const command of shown) {
    assert.doesNotThrow(
      () => check(command),
      (error: Error) => {
        assert.fail(`${command.where}: ${command.text}\n${error.message}`);
      },
    );
  }
});

test('each document with commands is run by the test that says so, or here', () => {
  for (const [path, file] of Object.entries(RUN_BY)) {
    assert.ok(existsSync(join(ROOT, path)), path);
    assert.ok(existsSync(join(ROOT, file)), file);
  }
});

const elsewhere = shown.filter(({ path }) => RUN_BY[path] === undefined);

test('every curl of the other documents is answered', async () => {
  await using service = await startTestService({
    env: { MANAGEMENT_INCLUDE: '*', MANAGEMENT_DEFAULT_ACCESS: 'unrestricted' },
  });
  await service.listen();
  const ports = { graphql: 4000, rest: 8000, management: 8080, webhook: 3000 } as const;
  // Sockets and certificates are those of tls.test.ts and unix-socket.test.ts.
  const isPlain = (words: readonly string[]) => !words.some((word) => /^--unix-socket|^https:/.test(word));
  const curls = elsewhere.filter(({ words }) => words[0] === 'curl' && isPlain(words));
  assert.ok(curls.length > 2);
  await using folder = await temporaryFolder();
  for (const { where, words } of curls) {
    const here = words.map((word) =>
      Object.entries(ports).reduce(
        (text, [door, port]) =>
          text.replace(
            new RegExp(`(?:http://)?(?:127\\.0\\.0\\.1|localhost):${port}`),
            service.urls[door] ?? '',
          ),
        word,
      ),
    );
    const { stdout } = await promisify(execFile)(
      'curl',
      [...here.slice(1), '-w', '\n%{http_code}', '-m', '20'],
      {
        cwd: folder.path,
      },
    );
    assert.match(stdout.split('\n').at(-1) ?? '', /^2\d\d$/, `${where}: ${words.join(' ')}\n${stdout}`);
  }
});

const missing =
  (await missingPostgres()) ??
  (existsSync('/usr/bin/psql') ? false : 'needs psql (Debian package postgresql-client)');

describe('PostgreSQL', { skip: missing }, () => {
  test('what the documents run by psql works on a database of a service', async () => {
    await using server = await startPostgres();
    const url = await server.createDatabase();
    await using folder = await temporaryFolder();
    await (await openDatabase(url))[Symbol.asyncDispose]();
    const scripts = new Set(
      elsewhere.filter(({ words: [program] }) => program === 'psql').map(({ text }) => text),
    );
    assert.ok(scripts.size > 4);
    for (const script of scripts) {
      await assert.doesNotReject(
        promisify(execFile)('sh', ['-c', script], {
          cwd: folder.path,
          env: { PATH: process.env.PATH, DATABASE_URL: url },
        }),
        script,
      );
    }
    assert.equal(
      (await runPortico(['migrate', '--check'], { cwd: folder.path, env: { DATABASE_URL: url } })).code,
      0,
    );
  });
});

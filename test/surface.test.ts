/**
 * Compares what users of Portico see and rely on with the files of test/surface/, however the sources are arranged.
 * `npm run surface` runs this file with `--update`, which rewrites those files; reviewers read their diff.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cp, mkdir } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { Writable } from 'node:stream';
import { after, describe, test } from 'node:test';
import { diff } from 'node:util';
import { createService, loadConfig } from 'portico';
import ts from 'typescript5';
import { buildPackage } from './support/package.ts';
import { missingPostgres, sharedPostgres } from './support/postgres.ts';
import { runCommand } from './support/run-command.ts';
import { describeCommands } from './support/surface/commands.ts';
import { describeExports } from './support/surface/exports.ts';
import { ERROR_CODES } from './support/surface/inner.ts';
import { describeLogMessages } from './support/surface/log-messages.ts';
import { describeApi, describeGraphql, describeMeters, openFullService } from './support/surface/service.ts';
import { describeSettings, settingNames } from './support/surface/settings.ts';
import { addedLines, describePostgres, describeSqlite } from './support/surface/tables.ts';
import { describeWrongConfigurations } from './support/surface/wrong-configurations.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..');
const FOLDER = join(import.meta.dirname, 'surface');
const UPDATE = 'npm run surface';
const isUpdate = process.argv.includes('--update');
/** One test builds the package, perhaps on a busy machine. */
const TIMEOUT = 300_000;
/** Lines of a difference that a failure shows. */
const MAX_SHOWN = 100;
/** Settings that add indexes. */
const INDEXED = [{ REST_SEARCH: 'keys' }, { REST_SEARCH: 'text', USERS_UNIQUE_EMAIL: 'true' }];

/** Compares a part of the surface with its file; `--update` writes the file. */
function holds(file: string, text: string): void {
  const path = join(FOLDER, file);
  const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const now = `${text}\n`;
  if (before === now) return;
  const changes = changesOf(before.split('\n'), now.split('\n'));
  if (!isUpdate) {
    assert.fail(
      `The surface differs from ${file}; if that is intended, run "${UPDATE}".\n${changes.join('\n')}`,
    );
  }
  writeFileSync(path, now);
  process.stderr.write(`${path}: ${changes.filter((line) => /^[+-]/.test(line)).length} lines changed\n`);
}

/** The added and removed lines, each run of them below the lines it is nested in. */
function changesOf(before: readonly string[], now: readonly string[]): readonly string[] {
  const lines: string[] = [];
  const above: string[] = [];
  let isRun = false;
  for (const [kind, line] of diff(now, before)) {
    const depth = line.search(/\S/);
    if (depth === -1) continue;
    above.length = Math.min(above.length, depth);
    const place = above.filter((each) => each !== '').join(' > ');
    if (kind !== 0 && !isRun && place !== '') lines.push(`  ${place}`);
    if (kind !== 0) lines.push(`${kind === 1 ? '+' : '-'} ${line}`);
    isRun = kind !== 0;
    // The index is the indentation, so there are gaps.
    for (let at = above.length; at < depth; at++) above.push('');
    above[depth] = line.trim();
  }
  const left = lines.length - MAX_SHOWN;
  return left > 0 && !isUpdate ? [...lines.slice(0, MAX_SHOWN), `and ${left} more lines`] : lines;
}

/** Calls a function at its first use and shares the result. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

const withoutPostgres = await missingPostgres();
const cleanup = new AsyncDisposableStack();
after(() => cleanup.disposeAsync());

const emptyFolder = async () => cleanup.use(await temporaryFolder()).path;
const portico = async (args: readonly string[]) => runCommand(args, { cwd: await emptyFolder() });
const help = once(async () => (await portico(['help', 'serve'])).stdout);
const fullService = once(async () => {
  const service = await openFullService(await emptyFolder());
  cleanup.defer(() => service.stop());
  return service;
});

/** Starts a service on a database and stops it, so that its tables are there. */
async function startOn(url: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  const logStream = new Writable({ write: (_chunk, _encoding, done) => done() });
  const settings = { DATABASE_URL: url, INTERFACES: 'rest,webhook', SHUTDOWN_PRE_STOP_DELAY: '0', ...env };
  const config = await loadConfig({ argv: [], env: settings, cwd: await emptyFolder() });
  await (await createService(config, { logStream })).stop();
}

/** The tables after a first start, and what settings add. */
async function tablesOf(url: string, describeTables: () => Promise<string>): Promise<string> {
  await startOn(url);
  const first = await describeTables();
  const parts = [first];
  for (const env of INDEXED) {
    await startOn(url, env);
    const title = Object.entries(env).map((pair) => pair.join('='));
    parts.push([`With ${title.join(' ')}`, ...addedLines(first, await describeTables())].join('\n'));
  }
  return parts.join('\n\n');
}

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly engines: object;
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  readonly peerDependencies: object;
}

/** The built package, in a folder from which its types resolve those of other packages. */
const builtPackage = once(async () => {
  await mkdir(join(ROOT, 'build'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'build/surface-'));
  cleanup.defer(() => rmSync(folder, { recursive: true, force: true }));
  const package_ = join(folder, 'package');
  const { built } = cleanup.use(await buildPackage({ types: true }));
  await cp(built, package_, { recursive: true, filter: (path) => path !== join(built, 'build') });
  const manifest = JSON.parse(readFileSync(join(package_, 'package.json'), 'utf8')) as Manifest;
  const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
    typeof target === 'string'
      ? []
      : [{ name: `portico${name.slice(1)}`, file: join(package_, target.types) }],
  );
  return { folder, manifest, entries };
});

/** The declarations of the package and the sources it is built from, as the compiler sees them. */
const program = once(async () => {
  const { entries } = await builtPackage();
  const onUnRecoverableConfigFileDiagnostic = (problem: ts.Diagnostic) => {
    throw new Error(ts.flattenDiagnosticMessageText(problem.messageText, '\n'));
  };
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic };
  const parsed = ts.getParsedCommandLineOfConfigFile(join(ROOT, 'tsconfig.build.json'), {}, host);
  assert.ok(parsed);
  const rootNames = [...parsed.fileNames, ...entries.map(({ file }) => file)];
  const options = { ...parsed.options, noEmit: true };
  const compilerHost = ts.createCompilerHost(options);
  compilerHost.jsDocParsingMode = ts.JSDocParsingMode.ParseNone;
  return ts.createProgram({ rootNames, options, host: compilerHost });
});

describe('the surface is that of test/surface', { concurrency: true, timeout: TIMEOUT }, () => {
  test('settings', async () => {
    holds('settings.txt', await describeSettings(await help(), await emptyFolder()));
  });

  test('messages of wrong configurations', async () => {
    const folder = await emptyFolder();
    const serve = (args: readonly string[], cwd: string) => runCommand(args, { cwd });
    const settings = await settingNames(await help(), folder);
    holds('wrong-configurations.txt', await describeWrongConfigurations(folder, settings, serve));
  });

  test('commands', async () => {
    holds('commands.txt', await describeCommands(portico));
  });

  test('error codes', () => {
    const blocks = Object.entries<object>(ERROR_CODES).map(([code, entry]) =>
      [code, ...Object.entries(entry).map(([name, value]) => `  ${name}: ${value}`)].join('\n'),
    );
    holds('error-codes.txt', blocks.sort().join('\n\n'));
  });

  test('meters', { skip: process.platform !== 'linux' && 'some are on Linux only' }, async () => {
    holds('meters.txt', await describeMeters(await fullService()));
  });

  for (const door of ['rest', 'webhook', 'management']) {
    test(`OpenAPI of the ${door} door`, async () => {
      holds(`openapi-${door}.yaml`, await describeApi(await fullService(), door));
    });
  }

  test('schema of the GraphQL door', async () => {
    holds('graphql.txt', await describeGraphql(await fullService()));
  });

  test('tables of SQLite', async () => {
    const file = join(await emptyFolder(), 'portico.db');
    holds('tables-sqlite.txt', await tablesOf(`sqlite:${file}`, async () => describeSqlite(file)));
  });

  test('tables of PostgreSQL', { skip: withoutPostgres }, async () => {
    await using server = await sharedPostgres();
    const url = await server.createDatabase();
    const query = (text: string) => server.sql(text, url);
    holds('tables-postgresql.txt', await tablesOf(url, () => describePostgres(query)));
  });
});

// The compiler holds the event loop for seconds, in which connections of the other tests would time out.
describe('the surface is that of test/surface, by the compiler', { timeout: TIMEOUT }, () => {
  test('exports of the package, with their types', async () => {
    const { manifest, entries } = await builtPackage();
    const names = Object.keys(manifest.exports);
    const { bin, engines, peerDependencies } = manifest;
    const values = await Promise.all(
      entries.map(async ({ name }) => {
        const values = Object.keys((await import(name)) as object);
        return `${name} at run time: ${values.sort().join(', ')}`;
      }),
    );
    const head = [
      `exports: ${names.sort().join(', ')}`,
      `bin: ${Object.keys(bin).join(', ')}`,
      `engines: ${JSON.stringify(engines)}`,
      `peers: ${JSON.stringify(peerDependencies)}`,
      ...values,
    ];
    holds('exports.txt', [head.join('\n'), describeExports(await program(), entries)].join('\n\n'));
  });

  test('log messages', async () => {
    const isSource = (file: string) => file.startsWith(ROOT + sep) && !file.includes('/node_modules/');
    holds('log-messages.txt', describeLogMessages(await program(), isSource));
  });
});

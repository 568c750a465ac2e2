/**
 * Runs the tests.
 *
 *     npm test               all tests, with a third of the rounds of each long proof
 *     npm run proof          the long proofs, with all of their rounds
 *     npm test -- <start>    the test files whose path begins with <start>
 *     npm test -- --record   also records the duration of each file
 *     npm test -- --seed random   properties try random cases instead of the same ones in each run; or a number
 *
 * The tests' files are in memory where the machine has the room, because a sync costs nothing there; those of
 * `npm run proof` are on the disk. Most files share a few processes, because starting Node and loading the
 * service takes longer than running most of them. The longest files start first. One PostgreSQL server serves
 * all files that need an empty database.
 */
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { enableCompileCache, flushCompileCache } from 'node:module';
import { join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { buildPackage } from '../../test/support/package.ts';
import { missingPostgres, startPostgres } from '../../test/support/postgres.ts';
import { type Batch, batches } from './batches.ts';

const ROOT = join(import.meta.dirname, '../..');
/** A file that imports it needs the built package, which is built once for all of them. */
const PACKAGE = /\bfrom '[^']*\/support\/package\.ts'/;
/** Is imported before all files. */
const SEED = 'test/support/property-seed.ts';
const SECONDS = join(import.meta.dirname, 'seconds.json');
const PATTERNS = [
  ...['src/**/*.test.ts', 'packages/**/*.test.ts', 'test/**/*.test.ts', 'scripts/**/*.test.ts'],
  'bench/{load,measure,report,scaling,soak}/*.test.ts',
];
/** Files that take less time are not recorded, in seconds. */
const RECORDED = 1;
/** More than the machine's cores, because many tests wait for a process, a disk or a client. */
const AT_ONCE = 6;
const TIMEOUT = 600_000;
const MEMORY = '/dev/shm';
/** Free space that the tests' files may need, in bytes. */
const ROOM = 4 * 1024 ** 3;
// No test waits for the vacuum, which visits every database once a minute.
const SERVER = { max_connections: '400', autovacuum: 'off' };

/** The part of Node's event for a finished test that is used here. */
interface Ended {
  readonly nesting: number;
  readonly file?: string;
  readonly details: { readonly duration_ms: number };
}

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    proof: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    seed: { type: 'string' },
  },
});

/** The test files, relative to the project. */
function testFiles(): readonly string[] {
  const files = globSync(PATTERNS, { cwd: ROOT, exclude: (path) => path.includes('node_modules') });
  return files
    .filter((file) => positionals.length === 0 || positionals.some((start) => file.startsWith(start)))
    .filter(
      (file) =>
        !flags.proof || /\bfrom '[^']*\/proof-settings\.ts'/.test(readFileSync(join(ROOT, file), 'utf8')),
    )
    .sort();
}

mkdirSync(join(ROOT, 'build'), { recursive: true });
/** A folder for this run only, because two runs may overlap. */
const BATCHES = mkdtempSync(join(ROOT, 'build/test-batches-'));
process.once('exit', () => rmSync(BATCHES, { recursive: true, force: true }));
process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));

/** Fails a batch whose test ends the process, because the tests after it have not run. */
const WHOLE = `import { after } from 'node:test';
let ended = false;
after(() => { ended = true; });
process.once('exit', () => { if (!ended) process.exitCode = 1; });
`;

/** Whether files can be in memory: there is room, and programs among them can be run. */
function hasMemoryFolder(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    const mount = / \/dev\/shm \S+ (\S+)/.exec(readFileSync('/proc/mounts', 'utf8'))?.[1] ?? 'noexec';
    return bavail * bsize >= ROOM && !mount.split(',').includes('noexec');
  } catch {
    return false;
  }
}

if (!flags.proof && process.env.TMPDIR === undefined && hasMemoryFolder()) {
  const folder = mkdtempSync(join(MEMORY, 'portico-test-'));
  // PostgreSQL runs as another user when the tests run as root.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
}

/** The file that runs the tests of a batch in one process. */
function entryOf({ name, files }: Batch): string {
  const entry = join(BATCHES, `${name}.test.ts`);
  const imports = [SEED, ...files].map(
    (file) => `import '${relative(BATCHES, join(ROOT, file)).split(sep).join('/')}';\n`,
  );
  writeFileSync(entry, WHOLE + imports.join(''));
  return entry;
}

const seconds = JSON.parse(readFileSync(SECONDS, 'utf8')) as Readonly<Record<string, number>>;
const selected = testFiles();
const files = batches(ROOT, selected, seconds).map(entryOf);

if (flags.seed !== undefined) process.env.PORTICO_TEST_SEED = flags.seed;
if (!flags.proof) process.env.PORTICO_PROOF ??= 'short';
process.env.PORTICO_MAIN ??= join(ROOT, 'dist/bin/portico.js');
process.env.NODE_COMPILE_CACHE ??= join(ROOT, 'build/compile-cache');

if (files.length > 1) {
  // Otherwise each of the first processes would compile the sources.
  enableCompileCache(process.env.NODE_COMPILE_CACHE);
  await import('../../test/support/service.ts');
  flushCompileCache();
}

await using cleanup = new AsyncDisposableStack();
if (selected.some((file) => PACKAGE.test(readFileSync(join(ROOT, file), 'utf8')))) {
  process.env.PORTICO_TEST_PACKAGE = cleanup.use(await buildPackage({ types: true })).built;
}

if ((await missingPostgres()) === undefined) {
  const server = cleanup.use(await startPostgres({ settings: SERVER }));
  process.env.PORTICO_TEST_POSTGRES_PORT = String(server.port);
}

const tests = run({ files: [...files], cwd: ROOT, concurrency: AT_ONCE, timeout: TIMEOUT });
const took = new Map<string, number>();
const add = ({ nesting, file, details }: Ended) => {
  if (nesting > 0 || file === undefined) return;
  const path = relative(ROOT, file).split(sep).join('/');
  took.set(path, (took.get(path) ?? 0) + details.duration_ms / 1_000);
};
tests.on('test:pass', add).on('test:fail', (test) => {
  add(test);
  if (test.todo === undefined) process.exitCode = 1;
});
await pipeline(tests.compose(new spec()), process.stdout, { end: false });
if (flags.record) {
  const long = [...took].filter(([, time]) => time >= RECORDED).sort(([a], [b]) => (a < b ? -1 : 1));
  const rounded = Object.fromEntries(long.map(([file, time]) => [file, Math.round(time * 10) / 10]));
  writeFileSync(SECONDS, `${JSON.stringify(rounded, null, 2)}\n`);
}

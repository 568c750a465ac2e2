import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Test files that run in one process. */
export interface Batch {
  readonly name: string;
  readonly files: readonly string[];
}

/** Folders and files that share processes, unless a file needs its own. */
const SHARED = [
  ...['bench/', 'packages/', 'scripts/', 'src/'],
  ...['test/access/', 'test/commands/', 'test/database/', 'test/deploy/', 'test/documents/', 'test/faults/'],
  ...['test/graphql/', 'test/http/', 'test/management/', 'test/openapi/', 'test/operations/'],
  ...['test/process/', 'test/rest/', 'test/support/', 'test/telemetry/', 'test/webhook/'],
  ...['test/contract/', 'test/architecture.', 'test/readme.', 'test/wording.'],
];

/**
 * Code in a test or its helpers that requires a separate process: threads, a PostgreSQL server that the test
 * stops, and the memory, clock, environment and listeners of its process. A test may start other processes.
 */
const OWN_PROCESS = new RegExp(
  [
    ...[/'node:worker_threads'/, /\bstartPostgres\(/, /\/collect-garbage\.ts'/],
    ...[
      /\bprocess\.(on|once|chdir|umask|exitCode|cpuUsage|memoryUsage|stdout|stderr)\b/,
      /\bdelete process\.env\b|\bprocess\.env(?:\.\w+|\[[^\]]+\])\s*(?:\?\?|\|\|)?=(?!=)|\(process\.env\b/,
    ],
    ...[/\bmonitorEventLoopDelay\b/, /\bmock\.(timers|method)\b/, /\bsetGlobal\w+/, /\bglobalThis\./],
  ]
    .map(({ source }) => source)
    .join('|'),
);

/** Helpers that use such things for all tests alike. */
const HELPERS: ReadonlySet<string> = new Set(['test/support/postgres.ts', 'test/support/run-command.ts']);

/** Files that measure their own process, which their text does not show. */
const ALONE: ReadonlySet<string> = new Set([
  'src/sql/sqlite-writer/checkpointer.test.ts',
  'src/telemetry/event-loop.test.ts',
]);

/** Approximate duration of a shared process, in seconds. A longer file runs alone. */
const LONGEST = 30;
/** Assumed duration of a file that was never measured, in seconds. */
const UNKNOWN = 0.3;

/**
 * Divides the test files of a project into batches, longest first. `seconds` contains the measured durations.
 */
export function batches(
  root: string,
  files: readonly string[],
  seconds: Readonly<Record<string, number>>,
): readonly Batch[] {
  const made: { files: string[]; seconds: number }[] = [];
  let open: (typeof made)[number] | undefined;
  for (const file of files) {
    const time = seconds[file] ?? UNKNOWN;
    const fits = open !== undefined && open.seconds + time <= LONGEST;
    if (open !== undefined && fits && canShare(root, file)) {
      open.files.push(file);
      open.seconds += time;
      continue;
    }
    const batch = { files: [file], seconds: time };
    made.push(batch);
    if (time < LONGEST && canShare(root, file)) open = batch;
  }
  return made
    .sort((a, b) => b.seconds - a.seconds)
    .map((batch, index) => ({ name: `batch-${index + 1}`, files: batch.files }));
}

/** Whether the tests of a file leave their process unchanged for others. */
export function canShare(root: string, file: string): boolean {
  return SHARED.some((folder) => file.startsWith(folder)) && !ALONE.has(file) && !needsProcess(root, file);
}

function needsProcess(root: string, file: string, seen = new Set<string>()): boolean {
  if (seen.has(file) || HELPERS.has(file)) return false;
  seen.add(file);
  const text = readFileSync(join(root, file), 'utf8');
  if (OWN_PROCESS.test(text)) return true;
  const helpers = [...text.matchAll(/\bfrom '(\.[^']*)'/g)]
    .map(([, path = '']) => join(dirname(file), path))
    .filter((path) => path.endsWith('.ts') && !/^(src|packages)\/(?!.*\.test\.ts$)/.test(path));
  // A text in a test may look like an import.
  return helpers.some((helper) => existsSync(join(root, helper)) && needsProcess(root, helper, seen));
}

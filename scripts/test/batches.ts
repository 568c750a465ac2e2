import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Test files that run in one process. */
export interface Batch {
  readonly name: string;
  readonly files: readonly string[];
}

/**
 * Code in a test or its helpers that requires a separate process, because it uses the memory, clock, environment
 * or listeners of its process. A test may start threads, servers and other processes, and may use `t.mock`, which
 * its end restores.
 */
const OWN_PROCESS = new RegExp(
  [
    /\/collect-garbage\.ts'/,
    /\bprocess\.(on|once|chdir|umask|exitCode|cpuUsage|memoryUsage)\b/,
    /\bdelete process\.env\b|\bprocess\.env(?:\.\w+|\[[^\]]+\])\s*(?:\?\?|\|\|)?=(?!=)|\(process\.env[,)]/,
    ...[/\bmonitorEventLoopDelay\b/, /(?<!\bt\.)\bmock\.(timers|method)\b/],
    ...[/\bsetGlobal\w+/, /\bglobalThis\.\w+\s*=(?!=)/],
  ]
    .map(({ source }) => source)
    .join('|'),
);

/** Helpers that use such things for all tests alike, and files that quote them. */
const HELPERS: ReadonlySet<string> = new Set([
  ...['test/support/postgres.ts', 'test/support/run-command.ts', 'bench/workbench.ts'],
  ...['scripts/sabotage/sabotages.ts', 'scripts/test/batches.test.ts'],
]);

/** Files that measure their own process, which their text does not show. */
const ALONE: ReadonlySet<string> = new Set([
  'src/management/endpoints/dumps.test.ts',
  'src/sql/sqlite-writer/checkpointer.test.ts',
  'src/telemetry/event-loop.test.ts',
]);

/**
 * Approximate duration of a shared process, in seconds. A longer file runs alone. Each process takes 1.4 s of processor
 * time before its first test.
 */
const LONGEST = 90;
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
  return !ALONE.has(file) && !needsProcess(root, file);
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

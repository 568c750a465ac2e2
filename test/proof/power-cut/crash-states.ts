import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openWriteConnection } from '../../../src/sql/sqlite/connection.ts';
import { migrate } from '../../../src/sql/sqlite/migrate.ts';
import type { Random } from '../../support/random.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { CrashDisk } from './crash-disk.ts';
import { checkHistory, type History } from './history.ts';
import type { Recording } from './recording.ts';

export interface CrashReport {
  /** How many were tried. */
  readonly states: number;
  /** Acknowledgements that were looked for, in all states together. */
  readonly acknowledgements: number;
  /** What was wrong, state by state. */
  readonly problems: readonly string[];
}

/**
 * Cuts the power at `count` random places of a recording and opens what a disk may hold then, as the program would.
 * What had been acknowledged before the cut must be found. A problem that is `enough` is the last one.
 */
export async function crashStates(
  { steps, history }: Recording,
  count: number,
  random: Random,
  enough: (problem: string) => boolean = () => false,
): Promise<CrashReport> {
  const cuts = Array.from({ length: count }, () => random.below(steps.length + 1)).sort((a, b) => a - b);
  await using folder = await temporaryFolder();
  const disk = new CrashDisk();
  const replies = new Set<string>();
  const problems: string[] = [];
  let acknowledgements = 0;
  let at = 0;
  let states = 0;
  for (const cut of cuts) {
    for (; at < cut; at++) {
      const step = steps[at];
      if (step === undefined) break;
      disk.advance(step);
      // Its first byte may be on its way as soon as the call begins.
      if (step.call.kind === 'reply') replies.add(step.call.requestId);
    }
    acknowledgements += replies.size;
    const problem = await problemOf(join(folder.path, 'state'), disk.crash(random), history, replies);
    states++;
    if (problem === undefined) continue;
    problems.push(`at step ${cut} of ${steps.length}: ${problem}`);
    if (enough(problem)) break;
  }
  return { states, acknowledgements, problems };
}

/** What is wrong with these files, if anything is. */
async function problemOf(
  folder: string,
  files: ReadonlyMap<string, Buffer>,
  history: History,
  replies: ReadonlySet<string>,
): Promise<string | undefined> {
  await mkdir(folder);
  try {
    for (const [name, bytes] of files) {
      // The index of the log is memory that processes share; it does not outlive the system.
      if (!name.endsWith('-shm')) await writeFile(join(folder, name), bytes);
    }
    using db = openWriteConnection(join(folder, 'portico.db'));
    assert.equal(db.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok');
    migrate(db);
    checkHistory(db, history, replies);
    return undefined;
  } catch (error) {
    return String(error);
  } finally {
    await rm(folder, { recursive: true });
  }
}

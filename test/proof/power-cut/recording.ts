import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tracedProcess } from '../../support/broken-machine.ts';
import { type PorticoProcess, startPortico } from '../../support/portico-process.ts';
import type { Random } from '../../support/random.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';
import { readStore } from '../kill/store-reader.ts';
import { History } from './history.ts';
import { readTrace, type Step, TRACE_WORDS } from './trace.ts';
import { sendWrites } from './writes.ts';

/** One life of the process: what is sent to it, and how it ends. */
export interface Life {
  readonly writes: number;
  /** The signal that ends it; or it ends by itself, because a sync failed. */
  readonly end: 'SIGTERM' | 'SIGKILL' | 'failure';
  /** What strace makes of its calls: `fsync:error=EIO:when=9` fails the ninth sync of each thread. */
  readonly inject?: string;
}

const EXITS = { SIGTERM: 0, SIGKILL: 'SIGKILL', failure: 1 } as const;

/** What a process did to its files in all its lives, and what its clients were told. */
export interface Recording {
  readonly steps: readonly Step[];
  /** The steps of each life. */
  readonly lives: readonly (readonly Step[])[];
  readonly history: History;
}

/** Runs the program on a fresh folder, one life after the other, and records every call that touches its files. */
export async function record(lives: readonly Life[], random: Random, main?: string): Promise<Recording> {
  await using folder = await temporaryFolder();
  const history = new History();
  const recorded: (readonly Step[])[] = [];
  for (const [i, { writes, end, inject }] of lives.entries()) {
    const trace = join(folder.path, `trace-${i}`);
    const faults = inject === undefined ? [] : ['-e', `inject=${inject}`];
    await using portico = startPortico({
      cwd: folder.path,
      env: { INTERFACES: 'rest,webhook', CONFIG: join(import.meta.dirname, '../rows/declaration.ts') },
      wrapper: ['strace', ...TRACE_WORDS, ...faults, '-o', trace],
      ...(main !== undefined && { main }),
    });
    await portico.ready();
    await using _node = endTraced(portico);
    const { rest = '', webhook = '' } = portico.urls;
    const mayFail = end === 'failure';
    await sendWrites({ rest, webhook, history, random, prefix: `life-${i}`, count: writes, mayFail });
    if (end === 'SIGKILL') {
      // Nothing may be under way: what a kill leaves of a call cannot be seen in the trace.
      using store = readStore(join(folder.path, 'portico.db'));
      await waitFor('all deliveries to be handled', () => store.openJobs() === 0);
    }
    if (end !== 'failure') process.kill(tracedProcess(portico.child.pid ?? 0), end);
    else await waitFor('the process to end by itself', () => portico.child.exitCode !== null);
    assert.equal(await portico.exited(), EXITS[end], portico.stderr);
    recorded.push(readTrace(await readFile(trace, 'latin1'), folder.path));
  }
  return { steps: recorded.flat(), lives: recorded, history };
}

/** Kills the traced process if it still runs: it would outlive its tracer. */
function endTraced({ child, exited }: PorticoProcess): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      process.kill(tracedProcess(child.pid ?? 0), 'SIGKILL');
      await exited();
    },
  };
}

import type { DatabaseSync } from 'node:sqlite';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { BatchResult } from '../../batch-queue.ts';
import { openReadConnection, openWriteConnection } from '../connection.ts';
import { OpenedFiles } from '../opened-files.ts';
import { BatchExecutor, type StepRows, type Write } from './batch.ts';
import { type PackedWrites, packResults, unpackWrites } from './packed.ts';

// The thread that owns the writing connection: a slow fsync blocks it, never the event loop of the doors.
const port = parentPort;
if (port === null) throw new Error('writer-thread.ts runs as a worker thread only');

const { file } = workerData as { readonly file: string };
const db = openWriteConnection(file);
const executor = new BatchExecutor(db);
let failed = false;
// Earlier processes may have been killed before their checkpoint.
check(executor.checkpoint());
const location = db.location();
/** Undefined for a database without a file. */
const files = location === null ? undefined : new OpenedFiles(location);
/** Why the files are no longer those at their paths; they can come back. */
let lost: string | undefined;
/** A look at the files takes 5 to 10 us, so one within so many milliseconds costs a busy writer less than a hundredth. */
const LOOK_INTERVAL = 1;
let lookedAt = 0;

/** Answers with the results of the batches in a commit, or with a string that says why the file is no longer durable. */
port.on('message', (message: PackedWrites | 'close') => {
  if (message === 'close') {
    using _last = failed ? walKeeper() : undefined;
    db.close();
    port.close();
    return;
  }
  const all = [message, ...waiting(port)];
  commit(all.filter(({ isBackground }) => !isBackground));
  for (const each of all) if (each.isBackground) commit([each], true);
});

/** Commits batches together, answers, and checkpoints when it is time. */
function commit(batches: readonly PackedWrites[], isBackground = false): void {
  if (batches.length === 0) return;
  const parts = batches.map(unpackWrites);
  const writes = parts.flat();
  const result = failed ? refused(writes, 'the file is no longer durable') : execute(writes);
  failed ||= result.fatal !== undefined;
  const lengths = parts.map((part) => part.length);
  port?.postMessage({ ...packResults(result, lengths), isBackground });
  if (failed || lost !== undefined) return;
  check(executor.maintain(writes));
}

/** The batches that are waiting in the port. None is "close", which comes after the last answer. */
function* waiting(from: MessagePort): Generator<PackedWrites> {
  for (;;) {
    const next = receiveMessageOnPort(from) as { readonly message: PackedWrites } | undefined;
    if (next === undefined) return;
    yield next.message;
  }
}

/** Executes writes. Only what is in the files at their paths is acknowledged, hence the look after the commit. */
function execute(writes: readonly Write[]): BatchResult<StepRows> {
  if (lost !== undefined) lost = files?.lost();
  if (lost !== undefined) return refused(writes, lost);
  const result = executor.execute(writes);
  const now = performance.now();
  if (now - lookedAt < LOOK_INTERVAL) return result;
  lookedAt = now;
  lost = files?.lost();
  return lost === undefined ? result : { ...result, ...refused(writes, lost) };
}

function refused(writes: readonly Write[], error: string): BatchResult<StepRows> {
  return { results: writes.map(() => ({ error })) };
}

function check(fatal: string | undefined): void {
  if (fatal === undefined) return;
  failed = true;
  port?.postMessage(fatal);
}

/**
 * A read-only connection that keeps the writing one from checkpointing and deleting the WAL when it closes. After a failed
 * fsync the WAL must stay, because the disk may lack pages of an earlier checkpoint; the next process repeats that.
 */
function walKeeper(): DatabaseSync {
  const keeper = openReadConnection(file);
  keeper.exec('SELECT 1 FROM users');
  return keeper;
}

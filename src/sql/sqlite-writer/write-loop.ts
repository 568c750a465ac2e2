import type { DatabaseSync } from 'node:sqlite';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { BatchResult } from '../batch-queue.ts';
import { type Look, OpenedFiles, openReadConnection, openWriteConnection } from '../sqlite/connection.ts';
import { BatchExecutor, type StepRows, type Write, type WriteRegistry } from './batch.ts';
import { Checkpointer } from './checkpointer.ts';
import { type PackedWrites, packResults, unpackWrites } from './packed.ts';
import type { WriterData } from './writer.ts';

/**
 * Minimum time between two checks of the files, in milliseconds: at 5 to 10 us each, they cost less than 1 %.
 */
const LOOK_INTERVAL = 1;

/**
 * Owns the writing connection on its thread: a slow fsync blocks it, but never the doors' event loop. Answers
 * each message with the results of the batches in a commit. Also posts a string once durability is lost, and
 * HeldWal reports. Ends with the message "close".
 */
export function serveWrites(port: MessagePort, { file, waits }: WriterData, registry: WriteRegistry): void {
  const db = openWriteConnection(file);
  const executor = new BatchExecutor(db, registry);
  let failed = false;
  const location = db.location();
  /** Undefined for a database without a file. */
  const files = location === null ? undefined : new OpenedFiles(location);
  /** The last known state of the files. Lost files may come back. */
  let seen: Look = files?.look() ?? { lost: undefined, walBytes: 0 };
  let lookedAt = 0;
  const checkpointer = new Checkpointer(db, {
    waits,
    walBytes: () => (failed || seen.lost !== undefined ? 0 : seen.walBytes),
    onFatal(error) {
      failed = true;
      port.postMessage(error);
    },
    onHeld: (held) => port.postMessage(held),
  });
  // Earlier processes may have been killed before their checkpoint.
  checkpointer.checkpoint();

  port.on('message', (message: PackedWrites | 'close') => {
    if (message === 'close') return void close();
    const all = [message, ...waiting(port)];
    commit(all.filter(({ isBackground }) => !isBackground));
    for (const each of all) if (each.isBackground) commit([each], true);
  });

  async function close(): Promise<void> {
    await checkpointer[Symbol.asyncDispose]();
    using _last = failed ? walKeeper(file) : undefined;
    db.close();
    port.close();
  }

  /** Commits batches together, answers, and lets the checkpointer run. */
  function commit(batches: readonly PackedWrites[], isBackground = false): void {
    if (batches.length === 0) return;
    const parts = batches.map(unpackWrites);
    const writes = parts.flat();
    const result = failed ? refused(writes, 'the file is no longer durable') : execute(writes);
    failed ||= result.fatal !== undefined;
    const lengths = parts.map((part) => part.length);
    port.postMessage({ ...packResults(result, lengths), isBackground });
    checkpointer.maintain();
  }

  /**
   * Executes writes. Checks the files after the commit, because only writes to the files at their paths may
   * be acknowledged.
   */
  function execute(writes: readonly Write[]): BatchResult<StepRows> {
    if (seen.lost !== undefined) look();
    if (seen.lost !== undefined) return refused(writes, seen.lost);
    const result = executor.execute(writes);
    if (performance.now() - lookedAt < LOOK_INTERVAL) return result;
    look();
    return seen.lost === undefined ? result : { ...result, ...refused(writes, seen.lost) };
  }

  function look(): void {
    lookedAt = performance.now();
    if (files !== undefined) seen = files.look();
  }
}

/** The batches waiting in the port. "close" is never among them, because it follows the last answer. */
function* waiting(from: MessagePort): Generator<PackedWrites> {
  for (;;) {
    const next = receiveMessageOnPort(from) as { readonly message: PackedWrites } | undefined;
    if (next === undefined) return;
    yield next.message;
  }
}

function refused(writes: readonly Write[], error: string): BatchResult<StepRows> {
  return { results: writes.map(() => ({ error })) };
}

/**
 * A read-only connection that keeps the writing one from checkpointing and deleting the WAL when it closes.
 * After a failed fsync the WAL must stay, because the disk may lack pages of an earlier checkpoint; the next
 * process rewrites it.
 */
function walKeeper(file: string): DatabaseSync {
  const keeper = openReadConnection(file);
  keeper.exec('SELECT 1 FROM sqlite_schema');
  return keeper;
}

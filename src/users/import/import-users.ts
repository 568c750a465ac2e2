import type { DatabaseUserStore } from '../database-user-store.ts';
import { EntrySource } from './entry-source.ts';
import type { ImportFormat } from './formats.ts';
import { IMPORT_BATCH } from './import-batch.ts';
import type { BadLine, GoodLine, ImportEntry } from './import-entry.ts';
import { ImportBeginning, type ImportMark, type ImportPosition } from './import-position.ts';

/** What became of a line: the id of its user, or why it was refused. */
export type ImportOutcome = { readonly line: number; readonly id: number } | BadLine;

/** The bytes of an import, and where they go. */
export interface ImportRequest {
  readonly users: Pick<DatabaseUserStore, 'importUsers' | 'importAll'>;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly format: ImportFormat;
  /** Maximum number of bytes; default no limit. */
  readonly maxBytes?: number | undefined;
  /** The recorded position of an import that has a key: lines up to it are passed over. */
  readonly position?: ({ readonly key: string } & ImportPosition) | undefined;
}

/**
 * Stores each line that is a user, in order, a batch per commit; yields the outcomes of each batch once it is durable.
 * While one is stored the next one is read, and no further: so memory stays flat, and who does not take the outcomes
 * stops the reading. Lines are stored as soon as nothing is being stored, so that a slow sender waits for no batch to
 * fill. Throws ImportError, StoreUnavailableError, or the error of the source, after what came before is stored.
 */
export async function* importUsers(request: ImportRequest): AsyncGenerator<readonly ImportOutcome[]> {
  const { users, chunks, format, maxBytes = Number.POSITIVE_INFINITY, position } = request;
  const source = new EntrySource(format, maxBytes);
  const iterator = chunks[Symbol.asyncIterator]();
  const beginning = position && new ImportBeginning(position);
  let from = position?.line ?? 0;
  let waiting: ImportEntry[] = [];
  let failure: unknown;
  const take = (entry: ImportEntry) => {
    if (beginning?.passes(entry) !== true) waiting.push(entry);
  };

  /** Stores what waits, up to a batch. */
  function storeNext(): Promise<readonly ImportOutcome[]> | undefined {
    if (waiting.length === 0) return undefined;
    const batch = waiting.slice(0, IMPORT_BATCH);
    waiting = waiting.slice(IMPORT_BATCH);
    const to = batch.at(-1)?.line ?? from;
    const mark = position && beginning && { key: position.key, from, to, digest: beginning.extend(batch) };
    from = to;
    return handled(storeBatch(users, batch, mark));
  }

  /** Reads one chunk; resolves to whether there was one. */
  async function readNext(): Promise<boolean> {
    const { value, done } = await iterator.next();
    if (done !== true) source.push(value, take);
    else {
      source.end(take);
      beginning?.requireSame();
    }
    return done !== true;
  }

  let reading: Promise<boolean> | undefined = handled(readNext());
  let storing: Promise<readonly ImportOutcome[]> | undefined;
  for (;;) {
    storing ??= storeNext();
    const reads =
      reading !== undefined && waiting.length < IMPORT_BATCH ? [reading.then(isRead, failed)] : [];
    if (storing === undefined && reads.length === 0) break;
    const event = await Promise.race([...reads, ...(storing === undefined ? [] : [storing])]);
    if (event === true) reading = handled(readNext());
    else if (event === false) reading = undefined;
    else {
      storing = storeNext();
      yield event;
    }
  }
  if (failure !== undefined) throw failure;

  function failed(error: unknown): boolean {
    failure = error;
    return false;
  }
}

function isRead(more: boolean): boolean {
  return more;
}

/** Keeps a rejection that nobody waits for yet from being reported; whoever waits gets it. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

async function storeBatch(
  users: ImportRequest['users'],
  batch: readonly ImportEntry[],
  mark: ImportMark | undefined,
): Promise<readonly ImportOutcome[]> {
  const good = batch.filter(isGood);
  const isNothing = good.length === 0 && mark === undefined;
  const ids = isNothing
    ? []
    : await users.importUsers(
        good.map(({ user }) => user),
        mark,
      );
  let nth = 0;
  return batch.map((entry) => {
    if (!isGood(entry)) return entry;
    const id = ids[nth++];
    return id === undefined ? emailTakenOn(entry.line) : { line: entry.line, id };
  });
}

export function isGood(entry: ImportEntry): entry is GoodLine {
  return 'user' in entry;
}

/** The refusal of a line whose email another user has. */
export function emailTakenOn(line: number): BadLine {
  return { line, code: 'EMAIL_TAKEN', reason: 'Another user has this email' };
}

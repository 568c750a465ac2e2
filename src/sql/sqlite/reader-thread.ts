import type { StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { describeError } from '../../core/errors.ts';
import { packRows } from '../list-sql.ts';
import { openReadConnection } from './connection.ts';
import type { ReadAnswer, ReadRequest } from './reader.ts';

// The thread that runs long reads, one after the other.
const port = parentPort;
if (port === null) throw new Error('reader-thread.ts runs as a worker thread only');

/** Maximum number of prepared statements to cache. */
const MAX_STATEMENTS = 64;

const { file } = workerData as { readonly file: string };
const db = openReadConnection(file);
const prepared = new Map<string, StatementSync>();

port.on('message', (message: ReadRequest | 'close') => {
  if (message === 'close') {
    db.close();
    port.close();
    return;
  }
  const [answer, ...moved] = answerTo(message);
  port.postMessage(answer, moved);
});

/** The answer and the memory to transfer with it. */
function answerTo({ text, values, page }: ReadRequest): readonly [ReadAnswer, ...ArrayBuffer[]] {
  try {
    const rows = statement(text).all(...values) as unknown as readonly (readonly unknown[])[];
    if (page === undefined) return [{ rows }];
    const packed = packRows(rows, page.limit, page.backwards);
    // Copied, because small buffers share a pool of Node that cannot be transferred.
    const json = new Uint8Array(packed.json);
    return [{ page: { ...packed, json } }, json.buffer];
  } catch (error) {
    return [{ error: describeError(error) }];
  }
}

function statement(text: string): StatementSync {
  const known = prepared.get(text);
  if (known !== undefined) return known;
  if (prepared.size === MAX_STATEMENTS) prepared.clear();
  const made = db.prepare(text);
  made.setReturnArrays(true);
  prepared.set(text, made);
  return made;
}

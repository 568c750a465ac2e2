import { parentPort, workerData } from 'node:worker_threads';
import { describeError } from '../../core/errors.ts';
import { packRows } from '../list-sql.ts';
import { openReadConnection, PreparedStatements } from './connection.ts';
import type { ReadAnswer, ReadRequest } from './reader.ts';

// The thread that runs long reads, one after the other.
const port = parentPort;
if (port === null) throw new Error('reader-thread.ts runs as a worker thread only');

const { file } = workerData as { readonly file: string };
const db = openReadConnection(file);
const statements = new PreparedStatements(db);

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
    const rows = statements.run(text, values);
    if (page === undefined) return [{ rows }];
    const packed = packRows(rows, page.limit, page.backwards);
    // Copied, because small buffers share a pool of Node that cannot be transferred.
    const json = new Uint8Array(packed.json);
    return [{ page: { ...packed, json } }, json.buffer];
  } catch (error) {
    return [{ error: describeError(error) }];
  }
}

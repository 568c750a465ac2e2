import { parentPort, workerData } from 'node:worker_threads';
import { describeError } from '../../core/errors.ts';
import { packRows, packTexts } from '../list-sql.ts';
import { isTooLong, StatementTime } from '../statement-time.ts';
import { openReadConnection, PreparedStatements } from './connection.ts';
import type { LevelsRequest, ReadAnswer, ReadRequest } from './reader.ts';

// The thread that runs long reads, one after the other.
const port = parentPort;
if (port === null) throw new Error('reader-thread.ts runs as a worker thread only');

const { file } = workerData as { readonly file: string };
const db = openReadConnection(file);
const statements = new PreparedStatements(db);
const time = new StatementTime(db);

/** Resolves when the functions are defined that write JSON of relations. */
let functions: Promise<void> | undefined;

port.on('message', async (message: ReadRequest | LevelsRequest | 'close') => {
  if (message === 'close') {
    db.close();
    port.close();
    return;
  }
  if ('plan' in message || message.bounds !== undefined) {
    functions ??= defineFunctions();
    await functions;
  }
  if ('plan' in message) {
    const [answer, ...moved] = levelsOf(message, await import('../selections/level-thread.ts'));
    port.postMessage({ ...answer, taken: time.end() }, moved);
    return;
  }
  const [answer, ...moved] = answerTo(message);
  port.postMessage({ ...answer, taken: time.end() }, moved);
});

async function defineFunctions(): Promise<void> {
  // Loaded only for relations.
  const { SQLITE_BASE64 } = await import('../../relations/codecs.ts');
  db.function(SQLITE_BASE64.name, { deterministic: true }, SQLITE_BASE64.call);
}

/** The answer and the memory to transfer with it. */
function answerTo(request: ReadRequest): readonly [ReadAnswer, ...ArrayBuffer[]] {
  const { text, values, page, bounds, most } = request;
  time.begin(most);
  try {
    if (bounds !== undefined) {
      const rows = bounds.atOnce ? statements.run(text, values) : statements.iterate(text, values);
      const packed = packTexts(rows, bounds);
      const bytes = new Uint8Array(packed.bytes);
      return [{ texts: { ...packed, bytes } }, bytes.buffer];
    }
    const rows = statements.run(text, values);
    if (page === undefined) return [{ rows }];
    const packed = packRows(rows, page.limit, page.backwards);
    // Copied, because small buffers share a pool of Node that cannot be transferred.
    const json = new Uint8Array(packed.json);
    return [{ page: { ...packed, json } }, json.buffer];
  } catch (error) {
    return [{ error: describeError(error), isTooLong: isTooLong(error) }];
  }
}

/** The page of a plan, in one snapshot. */
function levelsOf(
  { plan, most }: LevelsRequest,
  { answerPlan }: typeof import('../selections/level-thread.ts'),
): readonly [ReadAnswer, ...ArrayBuffer[]] {
  time.begin(most);
  try {
    db.exec('BEGIN');
    return answerPlan(plan, statements);
  } catch (error) {
    return [{ error: describeError(error), isTooLong: isTooLong(error) }];
  } finally {
    if (db.isTransaction) db.exec('COMMIT');
  }
}

import { Readable } from 'node:stream';
import { StoreUnavailableError } from '../../core/store-errors.ts';
import type { Exchange, Reply, StreamedBodies } from '../../http/endpoint.ts';
import { HttpProblem, reasonPhrase } from '../../http/problem.ts';
import { requestFields } from '../../observability/trace/request-fields.ts';
import type { BadLine } from '../../users/import/import-entry.ts';
import { ImportError } from '../../users/import/import-error.ts';
import { importTransaction } from '../../users/import/import-transaction.ts';
import { type ImportOutcome, type ImportRequest, importUsers } from '../../users/import/import-users.ts';
import { idempotencyKey } from '../idempotency.ts';
import type { UserEndpointOptions } from '../user-endpoints.ts';
import { ImportReport, stopLine } from './import-report.ts';
import { type AskedImport, appliedPreferences, askedImport } from './import-request.ts';

/** Imports that may run at the same time; each holds a few megabytes at most. */
const MAX_IMPORTS = 8;

const STATUS: Readonly<Record<ImportError['code'], number>> = {
  INVALID_IMPORT: 400,
  LINE_TOO_LONG: 400,
  IMPORT_TOO_LARGE: 413,
  IMPORT_IN_PROGRESS: 409,
  IMPORT_KEY_REUSED: 422,
};

/** POST /users of many users, which the request brings line by line; the reply reports on each. */
export function importEndpoint({ users, maxImportBytes }: UserEndpointOptions): StreamedBodies {
  let running = 0;

  async function handle(exchange: Exchange, body: Readable): Promise<Reply> {
    const asked = askedImport(exchange);
    if (asked === undefined) throw new TypeError('The request is no import');
    if (Number(exchange.headers['content-length'] ?? 0) > maxImportBytes) {
      throw problemOf(
        new ImportError('IMPORT_TOO_LARGE', `The import is larger than ${maxImportBytes} bytes`),
      );
    }
    if (running >= MAX_IMPORTS) {
      throw new HttpProblem(503, 'BUSY', reasonPhrase(503), { headers: { 'retry-after': '1' } });
    }
    running++;
    exchange.onClose(() => running--);
    const key = idempotencyKey(exchange);
    const position = key === undefined ? undefined : { key, ...(await users.beginImport(key)) };
    const { format } = asked;
    const chunks = chunksOf(body);
    const request = { users, chunks, format, maxBytes: maxImportBytes, position };
    return asked.isWhole ? whole(request, asked) : lineByLine(request, asked, exchange);
  }

  return { takes: (request) => askedImport(request) !== undefined, handle };
}

/** The bytes of a body. Throws HttpProblem where the client leaves. */
async function* chunksOf(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    // A reader that ends early must not close the connection under the reply.
    yield* body.iterator({ destroyOnReturn: false });
  } catch (cause) {
    throw new HttpProblem(400, 'BAD_REQUEST', 'The body did not end', { cause });
  }
}

/** The reply begins with the first lines that are stored: what fails before is a refusal like any other. */
async function lineByLine(request: ImportRequest, asked: AskedImport, exchange: Exchange): Promise<Reply> {
  const report = new ImportReport(asked.isMinimal);
  const outcomes = importUsers(request);
  const first = await outcomes.next().catch((error: unknown) => {
    throw problemOf(error);
  });
  async function* text(): AsyncGenerator<string> {
    try {
      if (first.done !== true) yield report.lines(first.value);
      for await (const batch of outcomes) {
        const lines = report.lines(batch);
        if (lines !== '') yield lines;
      }
    } catch (error) {
      // Nobody is there to be told.
      if (!(error instanceof HttpProblem)) yield stopOf(error, exchange);
      return;
    }
    yield report.end(request.position?.line ?? 0);
  }
  return reply(asked, Readable.from(text(), { objectMode: false, highWaterMark: 1 }));
}

async function whole(request: ImportRequest, asked: AskedImport): Promise<Reply> {
  const outcomes = await importTransaction(request).catch((error: unknown) => {
    throw problemOf(error);
  });
  const report = new ImportReport(asked.isMinimal);
  const text = report.lines(outcomes) + report.end(request.position?.line ?? 0);
  const refused = outcomes.find(isRefused);
  if (refused === undefined) return reply(asked, text);
  // Nothing is stored; the status and the code are those of the first line that is to blame.
  const { headers, ...rest } = reply(asked, text);
  const status = refused.code === 'EMAIL_TAKEN' ? 409 : 400;
  return { ...rest, status, headers: { ...headers, 'x-error-code': refused.code } };
}

function isRefused(outcome: ImportOutcome): outcome is BadLine {
  return !('id' in outcome);
}

function reply(asked: AskedImport, body: Reply['body']): Reply {
  const headers = { 'preference-applied': appliedPreferences(asked) };
  return { status: 200, type: 'application/x-ndjson', body, headers };
}

/** The refusal of an import that could not go on before its reply began. */
function problemOf(error: unknown): unknown {
  if (!(error instanceof ImportError)) return error;
  return new HttpProblem(STATUS[error.code], error.code, error.message);
}

/** What a reply that has begun says of an import that cannot go on. */
function stopOf(error: unknown, exchange: Exchange): string {
  if (error instanceof ImportError) return stopLine(error.code, error.message, error.line);
  if (!(error instanceof StoreUnavailableError)) throw error;
  exchange.log.error({ ...requestFields(exchange), err: error }, 'import stopped');
  return stopLine(error.code, reasonPhrase(503));
}

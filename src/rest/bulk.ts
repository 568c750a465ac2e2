import type { Readable } from 'node:stream';
import { BodyBudget, HttpProblem, type Reply, type RequestContext, reasonPhrase } from '@portico/transport';
import type { ErrorCode } from '../core/error-codes.ts';
import { StoreUnavailableError } from '../core/errors.ts';
import { preferences } from '../core/negotiation.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import { requestFields } from '../core/trace.ts';
import {
  type ImportFormat,
  type ImportOutcome,
  type ImportRequest,
  importTransaction,
  importUsers,
} from '../relations/import.ts';
import { type BadLine, ImportError } from '../relations/import-readers.ts';
import type { DatabaseUserStore } from '../relations/user-stores.ts';
import { idempotencyKey } from './messages.ts';

/** Maximum concurrent imports; each holds a few megabytes at most, unless it is one transaction. */
const MAX_IMPORTS = 8;

const STATUS: Readonly<Record<ImportError['code'], number>> = {
  INVALID_IMPORT: 400,
  LINE_TOO_LONG: 400,
  IMPORT_TOO_LARGE: 413,
  IMPORT_IN_PROGRESS: 409,
  IMPORT_KEY_REUSED: 422,
};

/** Options of imports. */
export interface ImportOptions {
  readonly users: DatabaseUserStore;
  /** Largest import in bytes. */
  readonly maxImportBytes: number;
  /** Bounds the memory of imports in one transaction. */
  readonly bodyBudget: BodyBudget;
}

/** Answers an import, which it reads from `ctx.stream`. */
type Importer = (ctx: RequestContext, asked: AskedImport) => Promise<Reply>;

/** POST /users with many users, read line by line; the reply reports on each line. */
export function importer({ users, maxImportBytes, bodyBudget }: ImportOptions): Importer {
  const places = new BodyBudget({ max: MAX_IMPORTS });
  return async (ctx, asked) => {
    if (Number(ctx.headers['content-length'] ?? 0) > maxImportBytes) {
      throw problemOf(
        new ImportError('IMPORT_TOO_LARGE', `The import is larger than ${maxImportBytes} bytes`),
      );
    }
    const running = new RunningImport(ctx, {
      places,
      memory: asked.isWhole ? bodyBudget : undefined,
    });
    const key = idempotencyKey(ctx);
    const position =
      key === undefined ? undefined : { key, ...(await running.stored(users.beginImport(key))) };
    const request = {
      users: {
        importUsers: (...given) => running.stored(users.importUsers(...given)),
        importAll: (...given) => running.stored(users.importAll(...given)),
      },
      chunks: running.chunks(),
      format: asked.format,
      maxBytes: maxImportBytes,
      position,
    } satisfies ImportRequest;
    return asked.isWhole ? whole(request, asked) : lineByLine(request, asked, ctx);
  };
}

/** Estimated memory of the lines of one transaction, per received byte. */
const MEMORY = 2;
/** How long a client has to read the refusal of an import that was dropped for another, in milliseconds. */
const LINGER = 2_000;

/** The budgets that an import draws on. */
interface ImportBudgets {
  /** Bounds the number of imports. */
  readonly places: BodyBudget;
  /** Bounds the bytes of imports in one transaction. */
  readonly memory: BodyBudget | undefined;
}

/**
 * An import that holds a place until its client has the reply, or until it is dropped in favour of another.
 */
class RunningImport {
  readonly #ctx: RequestContext;
  readonly #body: Readable;
  readonly #places: BodyBudget;
  readonly #place: ReturnType<BodyBudget['open']>;
  readonly #memory: BodyBudget | undefined;
  readonly #lines: ReturnType<BodyBudget['open']> | undefined;
  #received = 0;
  #refusal: HttpProblem | undefined;
  /** Rejects the pending read of the next chunk. */
  #fail: (problem: HttpProblem) => void = () => {};

  /** Throws HttpProblem if there is no free place. */
  constructor(ctx: RequestContext, { places, memory }: ImportBudgets) {
    this.#ctx = ctx;
    this.#body = ctx.stream;
    this.#places = places;
    this.#place = places.open(this);
    this.#memory = memory;
    this.#lines = memory?.open(this);
    ctx.onClose(() => this.#close());
    places.grow(this.#place, 1, 0);
  }

  #close(): void {
    this.#places.close(this.#place);
    if (this.#lines !== undefined) this.#memory?.close(this.#lines);
  }

  get caller(): RequestContext['caller'] {
    return this.#ctx.caller;
  }

  get client(): string {
    return this.#ctx.client;
  }

  refuse(problem: HttpProblem): void {
    this.#refusal = problem;
    this.#close();
    this.#fail(problem);
    // Destroys the body if the client does not read the refusal, which would otherwise keep the rest of the
    // import.
    const timer = setTimeout(() => this.#body.destroy(), LINGER).unref();
    this.#ctx.onClose(() => clearTimeout(timer));
  }

  /** Pauses the measurement of the client's speed while the store works. */
  async stored<T>(storing: MaybePromise<T>): Promise<T> {
    this.#places.pause(this.#place);
    try {
      return await storing;
    } finally {
      this.#places.resume(this.#place);
    }
  }

  /**
   * The bytes of the body. Throws HttpProblem if the client disconnects or the import is dropped for another.
   */
  async *chunks(): AsyncGenerator<Uint8Array> {
    // Ending the loop early must not close the connection before the reply is sent.
    const pieces = this.#body.iterator({ destroyOnReturn: false });
    for (;;) {
      if (this.#refusal !== undefined) throw this.#refusal;
      const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<Buffer>>();
      this.#fail = reject;
      pieces
        .next()
        .then(resolve, (cause: unknown) =>
          reject(new HttpProblem(400, 'BAD_REQUEST', 'The body did not end', { cause })),
        );
      const { value, done } = await promise;
      if (done === true) break;
      if (this.#refusal === undefined) this.#count(value.length);
      yield value;
    }
    if (this.#lines !== undefined) this.#memory?.complete(this.#lines);
  }

  /** Throws HttpProblem if a budget is exhausted. */
  #count(bytes: number): void {
    this.#received += bytes;
    this.#places.grow(this.#place, 1, this.#received);
    if (this.#lines !== undefined) this.#memory?.grow(this.#lines, MEMORY * this.#received, this.#received);
  }
}

/**
 * Waits for the first stored lines before it begins the reply, so that an earlier failure is an ordinary
 * refusal.
 */
async function lineByLine(request: ImportRequest, asked: AskedImport, ctx: RequestContext): Promise<Reply> {
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
      yield stopOf(error, ctx);
      return;
    }
    yield report.end(request.position?.line ?? 0);
  }
  return reply(asked, text());
}

async function whole(request: ImportRequest, asked: AskedImport): Promise<Reply> {
  const outcomes = await importTransaction(request).catch((error: unknown) => {
    throw problemOf(error);
  });
  const report = new ImportReport(asked.isMinimal);
  const text = report.lines(outcomes) + report.end(request.position?.line ?? 0);
  const refused = outcomes.find(isRefused);
  if (refused === undefined) return reply(asked, text);
  // Nothing is stored; the status and the code are those of the first refused line.
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

/** The refusal of an import that failed before its reply began. */
function problemOf(error: unknown): unknown {
  if (!(error instanceof ImportError)) return error;
  return new HttpProblem(STATUS[error.code], error.code, error.message);
}

/** The line that reports a failure after the reply has begun. */
function stopOf(error: unknown, ctx: RequestContext): string {
  if (error instanceof ImportError) return stopLine(error.code, error.message, error.line);
  if (error instanceof HttpProblem) return stopLine(error.code as ErrorCode, error.message);
  if (!(error instanceof StoreUnavailableError)) throw error;
  ctx.log.error({ ...requestFields(ctx), err: error }, 'import stopped');
  return stopLine(error.code, reasonPhrase(503));
}

/** Writes the report of an import: a line of JSON for each imported line, and the totals in the last one. */
class ImportReport {
  readonly #isMinimal: boolean;
  #created = 0;
  #refused = 0;

  /** `isMinimal` omits the lines that were stored. */
  constructor(isMinimal: boolean) {
    this.#isMinimal = isMinimal;
  }

  lines(outcomes: readonly ImportOutcome[]): string {
    let text = '';
    for (const outcome of outcomes) {
      if ('id' in outcome) {
        this.#created++;
        if (!this.#isMinimal) text += `{"line":${outcome.line},"id":${outcome.id}}\n`;
      } else {
        this.#refused++;
        text += `${JSON.stringify(outcome)}\n`;
      }
    }
    return text;
  }

  /**
   * The last line, present only if the whole import was read. `skipped` is the line up to which an earlier
   * attempt stored it.
   */
  end(skipped: number): string {
    const totals = { created: this.#created, refused: this.#refused, ...(skipped > 0 ? { skipped } : {}) };
    return `${JSON.stringify(totals)}\n`;
  }
}

/** The line that ends a report instead of the totals if the import failed. */
function stopLine(code: string, reason: string, line?: number): string {
  return `${JSON.stringify({ ...(line === undefined ? {} : { line }), code, reason, stopped: true })}\n`;
}

/** The options of an import. */
interface AskedImport {
  readonly format: ImportFormat;
  /** Whether all lines are stored in one transaction; otherwise each line succeeds or fails alone. */
  readonly isWhole: boolean;
  /** Whether the report omits the lines that were stored. */
  readonly isMinimal: boolean;
}

const IMPORT_TYPES: Readonly<Record<string, ImportFormat>> = {
  'application/x-ndjson': 'ndjson',
  'text/csv': 'csv',
};
const JSON_TYPES: ReadonlySet<string> = new Set(['', 'application/json']);

/**
 * Recognises an import by its media type, or by a JSON array with `Prefer: transaction=`. Undefined for other
 * creates, including arrays without the preference, which the contract refuses.
 */
export function askedImport(
  request: Pick<RequestContext, 'headers' | 'contentType'>,
): AskedImport | undefined {
  const { headers, contentType } = request;
  // Most requests have neither, so this check comes first.
  const mayBe = headers.prefer !== undefined || /ndjson|csv/i.test(contentType ?? '');
  if (!mayBe) return undefined;
  const [type = ''] = (contentType ?? '').split(';', 1);
  const name = type.trim().toLowerCase();
  const prefers = preferences(request);
  const transaction = prefers.get('transaction');
  const isArray = (transaction === 'all' || transaction === 'line') && JSON_TYPES.has(name);
  const format = IMPORT_TYPES[name] ?? (isArray ? 'array' : undefined);
  if (format === undefined) return undefined;
  return { format, isWhole: transaction === 'all', isMinimal: prefers.get('return') === 'minimal' };
}

/** The preferences that were applied, for Preference-Applied. */
function appliedPreferences({ isWhole, isMinimal }: AskedImport): string {
  return `transaction=${isWhole ? 'all' : 'line'}${isMinimal ? ', return=minimal' : ''}`;
}

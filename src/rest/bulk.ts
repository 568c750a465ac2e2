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
  type ImportPosition,
  type ImportRequest,
  type ImportTarget,
  importLines,
  importTransaction,
} from '../relations/import.ts';
import { type BadLine, ImportError } from '../relations/import-readers.ts';
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

/** The bounds of the imports of a door. */
export interface ImportLimits {
  /** Largest import in bytes. */
  readonly maxImportBytes: number;
  /** Bounds the memory of imports in one transaction. */
  readonly bodyBudget: BodyBudget;
  /** Bounds the number of imports. */
  readonly places: BodyBudget;
}

/** The bound on concurrent imports of a door. */
export function importPlaces(): BodyBudget {
  return new BodyBudget({ max: MAX_IMPORTS });
}

/** The imports of one kind of rows. */
export interface Imports<Row, Id> {
  /** The destination of a request. */
  target(ctx: RequestContext): ImportTarget<Row, Id>;
  /** The name under which an import with a key is recorded. */
  keyOf(key: string): string;
  /** Starts or resumes an import of that name. */
  begin(name: string): Promise<ImportPosition>;
  /** The members of a report that name a stored row. */
  idMember(id: Id): string;
}

/** Answers an import, which it reads from `ctx.stream`. */
type Importer = (ctx: RequestContext, asked: AskedImport) => Promise<Reply>;

/** POST of many rows, read line by line; the reply reports on each line. */
export function importer<Row, Id>(imports: Imports<Row, Id>, limits: ImportLimits): Importer {
  const { maxImportBytes, bodyBudget, places } = limits;
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
    const given = asked.isDry ? undefined : idempotencyKey(ctx);
    const key = given === undefined ? undefined : imports.keyOf(given);
    const position = key === undefined ? undefined : { key, ...(await running.stored(imports.begin(key))) };
    const target = imports.target(ctx);
    const request: ImportRequest<Row, Id> = {
      target: {
        ...target,
        store: (...given) => running.stored(target.store(...given)),
        storeAll: (...given) => running.stored(target.storeAll(...given)),
      },
      chunks: running.chunks(),
      format: asked.format,
      maxBytes: maxImportBytes,
      isDry: asked.isDry,
      position,
    };
    const report = new ImportReport<Id>(asked.isMinimal, imports.idMember);
    return asked.isWhole ? whole(request, asked, report) : lineByLine(request, asked, report, ctx);
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
async function lineByLine<Row, Id>(
  request: ImportRequest<Row, Id>,
  asked: AskedImport,
  report: ImportReport<Id>,
  ctx: RequestContext,
): Promise<Reply> {
  const outcomes = importLines(request);
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

/** Lines of the report of a transaction that are written in one turn. */
const REPORTED = 2_000;

async function whole<Row, Id>(
  request: ImportRequest<Row, Id>,
  asked: AskedImport,
  report: ImportReport<Id>,
): Promise<Reply> {
  const outcomes = await importTransaction(request).catch((error: unknown) => {
    throw problemOf(error);
  });
  let text = '';
  for (let at = 0; at < outcomes.length; at += REPORTED) {
    text += report.lines(outcomes.slice(at, at + REPORTED));
    await new Promise(setImmediate);
  }
  text += report.end(request.position?.line ?? 0);
  const refused = outcomes.find(isRefused);
  if (refused === undefined || asked.isDry) return reply(asked, text);
  // Nothing is stored; the status and the code are those of the first refused line.
  const { headers, ...rest } = reply(asked, text);
  const status = refused.code === 'NOT_ALLOWED' ? 403 : CONFLICTS.has(refused.code) ? 409 : 400;
  return { ...rest, status, headers: { ...headers, 'x-error-code': refused.code } };
}

/** The codes of lines that constraints refuse. */
const CONFLICTS: ReadonlySet<string> = new Set([
  'EMAIL_TAKEN',
  'TAKEN',
  'REFERENCE_MISSING',
] satisfies ErrorCode[]);

function isRefused<Id>(outcome: ImportOutcome<Id>): outcome is BadLine {
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
class ImportReport<Id> {
  readonly #isMinimal: boolean;
  readonly #idMember: (id: Id) => string;
  #created = 0;
  #refused = 0;

  /** `isMinimal` omits the lines that were stored. */
  constructor(isMinimal: boolean, idMember: (id: Id) => string) {
    this.#isMinimal = isMinimal;
    this.#idMember = idMember;
  }

  lines(outcomes: readonly ImportOutcome<Id>[]): string {
    let text = '';
    for (const outcome of outcomes) {
      if ('id' in outcome) {
        this.#created++;
        if (!this.#isMinimal) text += `{"line":${outcome.line},${this.#idMember(outcome.id)}}\n`;
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
  /** Whether nothing is stored, and the report tells which lines would be refused. */
  readonly isDry: boolean;
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
  return {
    format,
    isWhole: transaction === 'all',
    isMinimal: prefers.get('return') === 'minimal',
    isDry: false,
  };
}

/** The preferences that were applied, for Preference-Applied. */
function appliedPreferences({ isWhole, isMinimal }: AskedImport): string {
  return `transaction=${isWhole ? 'all' : 'line'}${isMinimal ? ', return=minimal' : ''}`;
}

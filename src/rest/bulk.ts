import type { Readable } from 'node:stream';
import {
  type Arrival,
  BodyBudget,
  type BodySender,
  HttpProblem,
  type Reply,
  type RequestContext,
  reasonPhrase,
  requestFields,
  type StreamedBodies,
} from '@portico/transport';
import type { ErrorCode } from '../core/error-codes.ts';
import { StoreUnavailableError } from '../core/errors.ts';
import type { MaybePromise } from '../core/maybe-promise.ts';
import {
  type ImportOutcome,
  type ImportRequest,
  importTransaction,
  importUsers,
} from '../relations/import.ts';
import { type BadLine, ImportError } from '../relations/import-readers.ts';
import {
  type AskedImport,
  appliedPreferences,
  askedImport,
  ImportReport,
  stopLine,
} from './export-endpoint.ts';
import type { UserEndpointOptions } from './users.ts';
import { idempotencyKey } from './validators.ts';

/** Imports that may run at the same time; each holds a few megabytes at most, unless it is one transaction. */
const MAX_IMPORTS = 8;

const STATUS: Readonly<Record<ImportError['code'], number>> = {
  INVALID_IMPORT: 400,
  LINE_TOO_LONG: 400,
  IMPORT_TOO_LARGE: 413,
  IMPORT_IN_PROGRESS: 409,
  IMPORT_KEY_REUSED: 422,
};

/** POST /users of many users, which the request brings line by line; the reply reports on each. */
export function importEndpoint({ users, maxImportBytes, bodyBudget }: UserEndpointOptions): StreamedBodies {
  const places = new BodyBudget({ max: MAX_IMPORTS });

  async function handle(ctx: RequestContext, body: Readable): Promise<Reply> {
    const asked = askedImport(ctx);
    if (asked === undefined) throw new TypeError('The request is no import');
    if (Number(ctx.headers['content-length'] ?? 0) > maxImportBytes) {
      throw problemOf(
        new ImportError('IMPORT_TOO_LARGE', `The import is larger than ${maxImportBytes} bytes`),
      );
    }
    const running = new RunningImport(ctx, body, {
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
  }

  return { takes: (request) => askedImport(request) !== undefined, handle };
}

/** The memory of the lines of one transaction, for each byte of them. */
const MEMORY = 2;
/** How long a client has to read that its import has made room for another, in milliseconds. */
const LINGER = 2_000;

/** What an import takes of. */
interface ImportBudgets {
  /** Counts imports. */
  readonly places: BodyBudget;
  /** Counts the bytes of one that is held as a whole. */
  readonly memory: BodyBudget | undefined;
}

/** An import that has one of the places, until its client has the reply or has to make room for another. */
class RunningImport implements BodySender {
  readonly #ctx: RequestContext;
  readonly #body: Readable;
  readonly #places: BodyBudget;
  readonly #place: Arrival;
  readonly #memory: BodyBudget | undefined;
  readonly #lines: Arrival | undefined;
  #received = 0;
  #refusal: HttpProblem | undefined;
  /** Fails what waits for the next piece. */
  #fail: (problem: HttpProblem) => void = () => {};

  /** Throws HttpProblem when there is no place. */
  constructor(ctx: RequestContext, body: Readable, { places, memory }: ImportBudgets) {
    this.#ctx = ctx;
    this.#body = body;
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
    // A client that does not read would hold the rest of its import.
    const timer = setTimeout(() => this.#body.destroy(), LINGER).unref();
    this.#ctx.onClose(() => clearTimeout(timer));
  }

  /** While the store works, the client is not the one who is slow. */
  async stored<T>(storing: MaybePromise<T>): Promise<T> {
    this.#places.pause(this.#place);
    try {
      return await storing;
    } finally {
      this.#places.resume(this.#place);
    }
  }

  /** The bytes of the body. Throws HttpProblem where the client leaves or has to make room. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    // A reader that ends early must not close the connection under the reply.
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

  /** Throws HttpProblem where there is no room. */
  #count(bytes: number): void {
    this.#received += bytes;
    this.#places.grow(this.#place, 1, this.#received);
    if (this.#lines !== undefined) this.#memory?.grow(this.#lines, MEMORY * this.#received, this.#received);
  }
}

/** The reply begins with the first lines that are stored: what fails before is a refusal like any other. */
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
function stopOf(error: unknown, ctx: RequestContext): string {
  if (error instanceof ImportError) return stopLine(error.code, error.message, error.line);
  if (error instanceof HttpProblem) return stopLine(error.code as ErrorCode, error.message);
  if (!(error instanceof StoreUnavailableError)) throw error;
  ctx.log.error({ ...requestFields(ctx), err: error }, 'import stopped');
  return stopLine(error.code, reasonPhrase(503));
}

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { StatementTimeError, StoreUnavailableError } from '../../core/errors.ts';
import { PACKAGE_ROOT, threadEnvironment } from '../../core/package-root.ts';
import type { RowPage } from '../../relations/rows/row-lists.ts';
import { SelectionLimitError } from '../../relations/selections/limits.ts';
import type { PackedRows, PackedTexts, TextBounds } from '../list-sql.ts';
import { largePage, type PagePlan } from '../selections/levels.ts';
import { MAX_TIME } from '../statement-time.ts';

/** A statement with its values. */
export interface Read {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A request that may take less than other statements. */
interface Timed {
  /** Processor time in milliseconds. */
  readonly most?: number;
}

/** The time that several reads have together. */
interface ReadBudget {
  left(most: number): number;
  spend(time: number): void;
}

/** A request to the thread. */
export interface ReadRequest extends Timed {
  readonly text: string;
  readonly values: readonly (string | number | null)[];
  /** Set if the rows are a page of users, which the thread packs. */
  readonly page: { readonly limit: number; readonly backwards: boolean } | undefined;
  /** Set if the rows are texts of an export, which the thread joins. */
  readonly bounds?: TextBounds;
}

/** A request to the thread for a page with nested rows. */
export interface LevelsRequest extends Timed {
  readonly plan: PagePlan;
}

/** An answer of the thread, which has `taken` processor time; `error` says why the read failed. */
export type ReadAnswer = { readonly taken?: number } & (
  | { readonly rows: readonly (readonly unknown[])[] }
  | { readonly page: PackedRows }
  | { readonly texts: PackedTexts }
  | { readonly levels: Omit<RowPage, 'json'> & { readonly json?: string } }
  | { readonly exceeded: Pick<SelectionLimitError, 'limit' | 'path'> }
  | { readonly error: string; readonly isTooLong?: boolean }
);

/**
 * Runs long reads on a separate thread, some within a budget. All methods fail with StoreUnavailableError, and with
 * StatementTimeError if the statement calls `timely`.
 */
export interface Reader extends AsyncDisposable {
  /** The rows, each as an array of columns. */
  rows(read: Read, budget?: ReadBudget): Promise<readonly (readonly unknown[])[]>;
  /** A page of users, whose statement selects one row more than `limit`. */
  page(read: Read, limit: number, backwards: boolean): Promise<PackedRows>;
  /** A page with nested rows. Fails with SelectionLimitError. */
  levels(plan: PagePlan, budget?: ReadBudget): Promise<RowPage>;
  /** The texts in the first column of rows: a piece of an export, which takes turns with the other reads. */
  texts(read: Read, bounds: TextBounds): Promise<PackedTexts>;
}

/** Maximum number of waiting reads, and of waiting pieces of exports. */
const MAX_WAITING = 100;
/**
 * How long a read may wait to start, in milliseconds; clients rarely wait longer. A piece waits for as many others as
 * there are exports, and would end an export that has begun.
 */
const MAX_WAIT = 10_000;

interface Waiting {
  readonly request: ReadRequest | LevelsRequest;
  readonly budget: ReadBudget | undefined;
  readonly since: number;
  resolve(answer: ReadAnswer): void;
}

/** Opens a reader of a file; its thread starts with the first read. */
export function openReader(file: string): Reader {
  return new ThreadReader(file);
}

class ThreadReader implements Reader {
  readonly #file: string;
  readonly #reads: Waiting[] = [];
  readonly #pieces: Waiting[] = [];
  #running: Waiting | undefined;
  /** Whether what ran last was a piece of an export. */
  #wasPiece = false;
  #worker: Worker | undefined;
  #isClosed = false;

  constructor(file: string) {
    this.#file = file;
  }

  async rows({ text, values }: Read, budget?: ReadBudget): Promise<readonly (readonly unknown[])[]> {
    const request = { text, values: values as ReadRequest['values'], page: undefined };
    const answer = await this.#ask(request, budget);
    return 'rows' in answer ? answer.rows : failed(answer);
  }

  async page({ text, values }: Read, limit: number, backwards: boolean): Promise<PackedRows> {
    const page = { limit, backwards };
    const answer = await this.#ask({ text, values: values as ReadRequest['values'], page });
    return 'page' in answer ? answer.page : failed(answer);
  }

  async levels(plan: PagePlan, budget?: ReadBudget): Promise<RowPage> {
    const answer = await this.#ask({ plan }, budget);
    if ('exceeded' in answer) throw new SelectionLimitError(answer.exceeded.limit, answer.exceeded.path);
    if (!('levels' in answer)) return failed(answer);
    const { large, json = '', ...page } = answer.levels;
    return large === undefined ? { json, ...page } : largePage(page, large);
  }

  async texts({ text, values }: Read, bounds: TextBounds): Promise<PackedTexts> {
    const request = { text, values: values as ReadRequest['values'], page: undefined, bounds };
    const answer = await this.#ask(request);
    return 'texts' in answer ? answer.texts : failed(answer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const { resolve } of [...this.#reads.splice(0), ...this.#pieces.splice(0)])
      resolve({ error: CLOSED });
    const worker = this.#worker;
    if (worker === undefined) return;
    const exited = Promise.withResolvers<void>();
    worker.once('exit', exited.resolve);
    worker.postMessage('close');
    await exited.promise;
  }

  #ask(request: ReadRequest | LevelsRequest, budget?: ReadBudget): Promise<ReadAnswer> {
    if (this.#isClosed) return Promise.resolve({ error: CLOSED });
    const waiting = isPiece(request) ? this.#pieces : this.#reads;
    if (waiting.length >= MAX_WAITING) return Promise.resolve({ error: BUSY });
    return new Promise((resolve) => {
      waiting.push({ request, budget, since: performance.now(), resolve });
      this.#next();
    });
  }

  #next(): void {
    while (this.#running === undefined) {
      const [first, second] = this.#wasPiece ? [this.#reads, this.#pieces] : [this.#pieces, this.#reads];
      const next = first.shift() ?? second.shift();
      if (next === undefined) return;
      if (!isPiece(next.request) && performance.now() - next.since > MAX_WAIT) {
        next.resolve({ error: BUSY });
        continue;
      }
      const most = next.budget?.left(MAX_TIME);
      if (most !== undefined && most <= 0) {
        next.resolve({ error: SPENT, isTooLong: true });
        continue;
      }
      this.#running = next;
      this.#wasPiece = isPiece(next.request);
      this.#thread().postMessage(most === undefined ? next.request : { ...next.request, most });
    }
  }

  #thread(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    // `.ts` when run from source, `.js` in the built package.
    const script = new URL(`src/sql/sqlite/reader-thread${extname(import.meta.url)}`, PACKAGE_ROOT);
    const worker = new Worker(script, {
      name: 'reader',
      workerData: { file: this.#file },
      env: threadEnvironment(),
    });
    worker.on('message', (answer: ReadAnswer) => this.#settle(answer));
    const end = (error: string) => {
      // The next read starts a new thread.
      if (this.#worker === worker) this.#worker = undefined;
      this.#settle({ error });
    };
    worker.on('error', (error) => end(`The reader thread failed: ${error}`));
    worker.on('exit', () => {
      if (this.#worker === worker) end('The reader thread exited');
    });
    this.#worker = worker;
    return worker;
  }

  #settle(answer: ReadAnswer): void {
    const ended = this.#running;
    this.#running = undefined;
    ended?.budget?.spend(answer.taken ?? 0);
    ended?.resolve(answer);
    this.#next();
  }
}

/** Whether a request is for a piece of an export, of which many follow each other. */
function isPiece(request: ReadRequest | LevelsRequest): boolean {
  return 'bounds' in request;
}

const CLOSED = 'The database is closed';
const SPENT = 'The time for statements is over';
const BUSY = 'Too many long reads wait for the database';

function failed(answer: ReadAnswer): never {
  if ('isTooLong' in answer && answer.isTooLong === true) throw new StatementTimeError();
  throw new StoreUnavailableError('error' in answer ? `The read failed: ${answer.error}` : 'The read failed');
}

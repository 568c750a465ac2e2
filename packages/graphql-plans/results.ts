import { randomUUID } from 'node:crypto';
import {
  type DirectiveNode,
  type ExecutionResult,
  type FragmentDefinitionNode,
  GraphQLDeferDirective,
  GraphQLError,
  GraphQLStreamDirective,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type VariableValues,
} from 'graphql';
import type { ErrorCode } from '../../src/core/error-codes.ts';
import { StoreUnavailableError } from '../../src/core/errors.ts';
import type { CooperativeScheduler } from '../../src/core/scheduler.ts';

/** The client that waits for a result and may leave before it is ready. */
export interface ClientSignal {
  /** Calls a listener once the client has left; returns a function that removes it. */
  onAbort(listener: () => void): () => void;
}

/** The result of a run whose client has left. */
export const ABANDONED: ExecutionResult = {
  errors: [
    new GraphQLError('The client disconnected before the result was ready', {
      extensions: { code: 'CLIENT_GONE' satisfies ErrorCode },
    }),
  ],
  data: null,
};

/**
 * Resolves to the result, or to ABANDONED after calling `abandon` if the recipient leaves first. `result`
 * must not reject.
 */
export function unlessAbandoned(
  recipient: ClientSignal | undefined,
  result: Promise<ExecutionResult>,
  abandon: () => void,
): Promise<ExecutionResult> {
  if (recipient === undefined) return result;
  return new Promise((resolve) => {
    const cancel = recipient.onAbort(() => {
      abandon();
      resolve(ABANDONED);
    });
    void result.then((made) => {
      cancel();
      resolve(made);
    });
  });
}

/**
 * The recipient of several results, with a single listener: long streams and batches would otherwise add
 * many.
 */
export class SharedClientSignal implements ClientSignal {
  readonly #recipient: ClientSignal;
  readonly #departure = new ClientAbort();
  #isRegistered = false;

  constructor(recipient: ClientSignal) {
    this.#recipient = recipient;
  }

  onAbort(listener: () => void): () => void {
    const cancel = this.#departure.onAbort(listener);
    if (!this.#isRegistered) {
      this.#isRegistered = true;
      this.#recipient.onAbort(() => this.#departure.leave());
    }
    return cancel;
  }
}

/** A client signal that is triggered by `leave`. */
export class ClientAbort implements ClientSignal {
  readonly #listeners = new Set<() => void>();
  #hasLeft = false;

  onAbort(listener: () => void): () => void {
    if (this.#hasLeft) listener();
    // Wrapped, so that a listener that is given twice is called twice.
    const called = () => listener();
    this.#listeners.add(called);
    return () => this.#listeners.delete(called);
  }

  leave(): void {
    this.#hasLeft = true;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}

/** Limits on the result of an operation. */
export interface ResultLimits {
  /** Maximum values: objects, list items and leaves; default 1,000,000. */
  readonly maxResultValues: number;
  /** Maximum bytes of its JSON; default 16 MiB. */
  readonly maxResultBytes: number;
}

/** Bytes of the result between two checks of the clock. */
const STEP = 32 * 1024;

/** The size of a run's result so far, and its limits and time slices. */
export class ResultBudget {
  values = 0;
  /**
   * Bytes of JSON, as a lower bound: escapes and multi-byte characters count only once the text is written.
   */
  bytes = 0;
  /** A list calls `isSpent` once `bytes` reaches this. */
  checkAt = STEP;
  /** The error with which the run ends without data; undefined while the result is within its limits. */
  exceeded: GraphQLError | undefined;
  /** Whether the run has finished; resolvers that are still running are ignored then. */
  isClosed = false;
  readonly #limits: ResultLimits;
  readonly #turns: CooperativeScheduler;
  /** Bytes of text held by lists of the result. */
  #held = 0;
  /** The time of the first check, and the end of the current slice; 0 before the first check. */
  #began = 0;
  #until = 0;
  #turn: Promise<void> | undefined;

  constructor(limits: ResultLimits, turns: CooperativeScheduler) {
    this.#limits = limits;
    this.#turns = turns;
  }

  /** The maximum number of values. */
  get maxValues(): number {
    return this.#limits.maxResultValues;
  }

  /** Whether a part of the result is already JSON text. */
  get holdsText(): boolean {
    return this.#held > 0;
  }

  /** Whether the result is within its limits; otherwise `exceeded` says which limit it exceeds. */
  isWithin(): boolean {
    const { maxResultValues, maxResultBytes } = this.#limits;
    if (this.values > maxResultValues) this.#exceed('maxResultValues', `${maxResultValues} values`);
    if (this.bytes > maxResultBytes || this.#held > maxResultBytes) {
      this.#exceed('maxResultBytes', `${maxResultBytes} bytes`);
    }
    return this.exceeded === undefined;
  }

  /** Whether the time slice is over, so that the rest has to wait for `turn`. Throws `exceeded`. */
  isSpent(): boolean {
    if (!this.isWithin()) throw this.exceeded;
    const now = performance.now();
    if (this.#began === 0) {
      this.#began = now;
      // If too much text is held already, a new run waits for its turn at the next check.
      this.#until = this.#turns.isFull ? now : now + this.#turns.slice;
    } else if (now >= this.#until) return true;
    this.checkAt = this.bytes + STEP;
    return false;
  }

  /** Resolves when the run may continue, after others had a turn. Rejects if the run has finished. */
  turn(): Promise<void> {
    this.#turn ??= this.#turns.next(this.#began).then(() => {
      this.#turn = undefined;
      if (this.isClosed) throw new Error('The run has finished');
      this.#until = performance.now() + this.#turns.slice;
      this.checkAt = this.bytes + STEP;
    });
    return this.#turn;
  }

  /** Counts a field that is JSON already. Throws `exceeded`. */
  holdText({ values, bytes }: JsonText): void {
    this.values += values;
    this.hold(bytes);
  }

  /** Counts text that is held until the run closes. Throws `exceeded`. */
  hold(bytes: number): void {
    if (this.isClosed) return;
    this.#held += bytes;
    this.#turns.hold(bytes);
    if (!this.isWithin()) throw this.exceeded;
  }

  /** Ends the run and releases its text, which the reply accounts for from now on. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#turns.release(this.#held);
  }

  #exceed(limit: keyof ResultLimits, what: string): void {
    this.exceeded ??= new GraphQLError(`The result has more than ${what} (${limit}); ask for less`, {
      extensions: { code: 'LIMIT_EXCEEDED' satisfies ErrorCode, limit },
    });
  }
}

/**
 * Placeholder of a list while the surrounding text is written. It is random, so no client can put it into
 * data.
 */
const PLACEHOLDER = `list ${randomUUID()}`;

/**
 * A long list of a result, held as JSON: its items are produced in time slices and need far less memory as
 * text.
 */
export class JsonList {
  readonly #budget: ResultBudget;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(budget: ResultBudget) {
    this.#budget = budget;
  }

  /** Adds items that contain no long lists. Throws if the result exceeds its limits. */
  add(items: readonly unknown[]): void {
    if (items.length > 0) this.#append([Buffer.from(JSON.stringify(items))]);
  }

  /** Like `add`, for items that may contain long lists; takes ten times as long. */
  addWithLists(items: readonly unknown[]): void {
    if (items.length === 0) return;
    const { text, lists } = textOf(items);
    // The inner lists have counted their own bytes.
    this.#append(piecesOf(text, lists), sum(lists));
  }

  /**
   * Appends the JSON of an array: its opening bracket becomes a comma unless it is the first, and its closing
   * bracket is dropped.
   */
  #append(pieces: readonly Buffer[], counted = 0): void {
    const before = this.#bytes;
    for (const [index, piece] of pieces.entries()) {
      if (index === 0 && this.#pieces.length > 0) piece.write(',');
      const part = index === pieces.length - 1 ? piece.subarray(0, -1) : piece;
      this.#pieces.push(part);
      this.#bytes += part.byteLength;
    }
    this.#budget.hold(this.#bytes - before - counted);
  }

  get bytes(): number {
    return this.#bytes;
  }

  get pieces(): readonly Piece[] {
    return [...(this.#pieces.length === 0 ? [OPEN] : this.#pieces), CLOSE];
  }
}

/** The JSON of a whole field, which a result contains as it is: what `extensions.selects` returns. */
export class JsonText {
  readonly text: string;
  /** How many values it has: objects, list items and leaves. */
  readonly values: number;

  constructor(text: string, values: number) {
    this.text = text;
    this.values = values;
  }

  /** A lower bound: characters may take several bytes. */
  get bytes(): number {
    return this.text.length;
  }

  get pieces(): readonly Piece[] {
    return [this.text];
  }
}

/** A part of a result that is JSON already. */
type JsonPart = JsonList | JsonText;
type Piece = string | Buffer;

const OPEN = Buffer.from('[');
const CLOSE = Buffer.from(']');

/** The JSON of a value that may contain long lists or other parts that are JSON already. */
export function jsonWithLists(value: unknown): string | Buffer {
  const { text, lists } = textOf(value);
  if (lists.every((list) => list instanceof JsonText)) {
    return text
      .split(`"${PLACEHOLDER}"`)
      .reduce((joined, part, index) => joined + (lists[index - 1] as JsonText).text + part);
  }
  return Buffer.concat(piecesOf(text, lists));
}

function sum(lists: readonly JsonPart[]): number {
  return lists.reduce((bytes, list) => bytes + list.bytes, 0);
}

function textOf(value: unknown): { readonly text: string; readonly lists: readonly JsonPart[] } {
  const lists: JsonPart[] = [];
  const text = JSON.stringify(value, (_key, part: unknown) => {
    if (!(part instanceof JsonList) && !(part instanceof JsonText)) return part;
    lists.push(part);
    return PLACEHOLDER;
  });
  return { text, lists };
}

/** The first and the last piece are never shared with a list. */
function piecesOf(text: string, lists: readonly JsonPart[]): readonly Buffer[] {
  if (lists.length === 0) return [Buffer.from(text)];
  return text
    .split(`"${PLACEHOLDER}"`)
    .flatMap((part, index) => [part, ...(lists[index]?.pieces ?? [])])
    .map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece));
}

/** Marks a result that contains long lists, for the function that writes its text. */
const LISTS = Symbol('lists');

/** Returns the result with that mark. */
export function withLists(result: ExecutionResult): ExecutionResult {
  return { ...result, [LISTS]: true } as ExecutionResult;
}

/** The JSON of a result, as UTF-8 bytes if it contains long lists. */
export function resultText(result: ExecutionResult): string | Buffer {
  return LISTS in result ? jsonWithLists(result) : JSON.stringify(result);
}

const NAMES: readonly string[] = [GraphQLDeferDirective.name, GraphQLStreamDirective.name];

/** Finds @defer and @stream in an operation's selections. */
export function incrementalDirectives(
  definition: OperationDefinitionNode,
  fragments: Readonly<Record<string, FragmentDefinitionNode>>,
): readonly DirectiveNode[] {
  const found: DirectiveNode[] = [];
  const visited = new Set<string>();
  const search = ({ selections }: SelectionSetNode): void => {
    for (const node of selections) {
      for (const directive of node.directives ?? []) {
        if (NAMES.includes(directive.name.value)) found.push(directive);
      }
      if (node.kind !== Kind.FRAGMENT_SPREAD) {
        if (node.selectionSet !== undefined) search(node.selectionSet);
        continue;
      }
      const { value: name } = node.name;
      if (visited.has(name)) continue;
      visited.add(name);
      const fragment = fragments[name];
      if (fragment !== undefined) search(fragment.selectionSet);
    }
  };
  search(definition.selectionSet);
  return found;
}

/**
 * The refusal of an operation with incremental delivery, for the first of `directives` that is not disabled;
 * undefined if there is none. Results are always delivered whole.
 */
export function incrementalRefusal(
  directives: readonly DirectiveNode[],
  variables: VariableValues,
): GraphQLError | undefined {
  const directive = directives.find((node) => !isOff(node, variables));
  if (directive === undefined) return undefined;
  return new GraphQLError(
    `@${directive.name.value} asks for incremental delivery, which is experimental and not part of the GraphQL specification; leave it out or set its argument "if" to false`,
    { nodes: directive, extensions: { code: 'INCREMENTAL_DELIVERY' satisfies ErrorCode } },
  );
}

function isOff({ arguments: given }: DirectiveNode, { coerced }: VariableValues): boolean {
  const value = given?.find(({ name }) => name.value === 'if')?.value;
  if (value?.kind === Kind.VARIABLE) return coerced[value.name.value] === false;
  return value?.kind === Kind.BOOLEAN && !value.value;
}

/**
 * Replaces errors that the program threw by "Internal server error", or by "Service Unavailable" with the
 * code of REST's 503 if the store is unavailable. Errors from GraphQL itself and GraphQLErrors thrown by
 * resolvers, of any copy of GraphQL.js, are kept. `onMasked` receives each hidden error.
 */
export function maskErrors(result: ExecutionResult, onMasked: (error: Error) => void): ExecutionResult {
  if (result.errors === undefined) return result;
  return { ...result, errors: result.errors.map((error) => mask(error, onMasked)) };
}

function mask(error: GraphQLError, onMasked: (error: Error) => void): GraphQLError {
  const { originalError } = error;
  if (originalError == null || isKind<GraphQLError>(originalError, 'Error')) return error;
  onMasked(originalError);
  const [message, code] = maskOf(originalError);
  return new GraphQLError(message, {
    ...(error.nodes && { nodes: error.nodes }),
    ...(error.path && { path: error.path }),
    extensions: { code },
  });
}

/** The message and code that clients get instead of an error of the program. */
export function maskOf(error: unknown): readonly [message: string, code: ErrorCode] {
  return error instanceof StoreUnavailableError
    ? ['Service Unavailable', error.code]
    : ['Internal server error', 'INTERNAL_SERVER_ERROR'];
}

/**
 * Whether a value is an instance of a GraphQL.js class, from any copy of it: `Schema` stands for
 * GraphQLSchema.
 */
export function isKind<T>(value: unknown, name: string): value is T {
  return Object.prototype.toString.call(value) === `[object GraphQL${name}]`;
}

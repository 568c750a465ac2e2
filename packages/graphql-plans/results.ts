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

/** Who waits for a result, and may leave before it is there. */
export interface ClientSignal {
  /** Calls a listener once the recipient is gone; returns what takes that back. */
  onAbort(listener: () => void): () => void;
}

/** The result of a run that nobody waits for any more. */
export const ABANDONED: ExecutionResult = {
  errors: [
    new GraphQLError('The client has left before the result', {
      extensions: { code: 'CLIENT_GONE' satisfies ErrorCode },
    }),
  ],
  data: null,
};

/** The result of a run, or ABANDONED once its recipient has left; calls `abandon` then. `result` must not reject. */
export function unlessAbandoned(
  recipient: ClientSignal | undefined,
  result: Promise<ExecutionResult>,
  abandon: () => void,
): Promise<ExecutionResult> {
  if (recipient === undefined) return result;
  return new Promise((resolve) => {
    const stay = recipient.onAbort(() => {
      abandon();
      resolve(ABANDONED);
    });
    void result.then((made) => {
      stay();
      resolve(made);
    });
  });
}

/** One recipient of several results: they share one listener at it, which long streams and batches need. */
export class SharedClientSignal implements ClientSignal {
  readonly #recipient: ClientSignal;
  readonly #departure = new ClientAbort();
  #isRegistered = false;

  constructor(recipient: ClientSignal) {
    this.#recipient = recipient;
  }

  onAbort(listener: () => void): () => void {
    const stay = this.#departure.onAbort(listener);
    if (!this.#isRegistered) {
      this.#isRegistered = true;
      this.#recipient.onAbort(() => this.#departure.leave());
    }
    return stay;
  }
}

/** A recipient that somebody else tells when it has left. */
export class ClientAbort implements ClientSignal {
  readonly #listeners = new Set<() => void>();
  #hasLeft = false;

  onAbort(listener: () => void): () => void {
    if (this.#hasLeft) listener();
    // Each its own, should the same be given twice.
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

/** What the result of one operation may hold. */
export interface ResultLimits {
  /** Maximum values: objects, items of lists and leaves; default 1,000,000. */
  readonly maxResultValues: number;
  /** Maximum bytes of its JSON; default 16 MiB. */
  readonly maxResultBytes: number;
}

/** The limits where an option sets none. */
export const DEFAULT_RESULT_LIMITS: ResultLimits = {
  maxResultValues: 1_000_000,
  maxResultBytes: 16 * 1024 * 1024,
};

/** Bytes of the result between two looks at the clock. */
const STEP = 32 * 1024;

/** What one run has made of its result so far, and may still make. */
export class ResultBudget {
  values = 0;
  /** Bytes of JSON, at least: what escapes and other characters add is known once the text is made. */
  bytes = 0;
  /** When `bytes` has reached this, a list asks `isSpent`. */
  checkAt = STEP;
  /** Why the run ends without data; undefined while the result is within its limits. */
  exceeded: GraphQLError | undefined;
  /** Whether the run has finished; what still runs is ignored then. */
  isClosed = false;
  readonly #limits: ResultLimits;
  readonly #turns: CooperativeScheduler;
  /** Bytes of text that lists of the result hold. */
  #held = 0;
  /** The first look at the clock, and when the slice ends; 0 before it. */
  #began = 0;
  #until = 0;
  #turn: Promise<void> | undefined;

  constructor(limits: ResultLimits, turns: CooperativeScheduler) {
    this.#limits = limits;
    this.#turns = turns;
  }

  /** Maximum values of the result. */
  get maxValues(): number {
    return this.#limits.maxResultValues;
  }

  /** Whether text was made of a part of the result. */
  get holdsText(): boolean {
    return this.#held > 0;
  }

  /** Whether the result is within its limits; else `exceeded` says which one it is past. */
  isWithin(): boolean {
    const { maxResultValues, maxResultBytes } = this.#limits;
    if (this.values > maxResultValues) this.#exceed('maxResultValues', `${maxResultValues} values`);
    if (this.bytes > maxResultBytes || this.#held > maxResultBytes) {
      this.#exceed('maxResultBytes', `${maxResultBytes} bytes`);
    }
    return this.exceeded === undefined;
  }

  /** Whether the slice is over, so that the rest has to wait for `turn`. Throws `exceeded`. */
  isSpent(): boolean {
    if (!this.isWithin()) throw this.exceeded;
    const now = performance.now();
    if (this.#began === 0) {
      this.#began = now;
      // What begins while there is too much text waits for its turn at the next look.
      this.#until = this.#turns.isFull ? now : now + this.#turns.slice;
    } else if (now >= this.#until) return true;
    this.checkAt = this.bytes + STEP;
    return false;
  }

  /** Resolves when the run may go on, after others had their turn. Rejects once the run has finished. */
  turn(): Promise<void> {
    this.#turn ??= this.#turns.next(this.#began).then(() => {
      this.#turn = undefined;
      if (this.isClosed) throw new Error('The run has finished');
      this.#until = performance.now() + this.#turns.slice;
      this.checkAt = this.bytes + STEP;
    });
    return this.#turn;
  }

  /** Counts text that is kept until the run closes. Throws `exceeded`. */
  hold(bytes: number): void {
    if (this.isClosed) return;
    this.#held += bytes;
    this.#turns.hold(bytes);
    if (!this.isWithin()) throw this.exceeded;
  }

  /** Ends the run: nothing more is made, and its text is the reply's business. */
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

/** Stands for a list while the text around it is made. No client knows it, so no data can hold it. */
const MARK = `list ${randomUUID()}`;

/** A long list of a result, kept as JSON: its items are made in turns and need far less memory as text. */
export class JsonList {
  readonly #budget: ResultBudget;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(budget: ResultBudget) {
    this.#budget = budget;
  }

  /** Adds items that hold no long lists. Throws when the result is past its limits. */
  add(items: readonly unknown[]): void {
    if (items.length > 0) this.#append([Buffer.from(JSON.stringify(items))]);
  }

  /** The same where some may hold long lists, which takes ten times as long. */
  addWithLists(items: readonly unknown[]): void {
    if (items.length === 0) return;
    const { text, lists } = textOf(items);
    // The lists within have counted theirs.
    this.#append(piecesOf(text, lists), sum(lists));
  }

  /** Takes the JSON of an array into its own: the bracket before it becomes a comma, the one behind it goes. */
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

  get pieces(): readonly Buffer[] {
    return [...(this.#pieces.length === 0 ? [OPEN] : this.#pieces), CLOSE];
  }
}

const OPEN = Buffer.from('[');
const CLOSE = Buffer.from(']');

/** The JSON of a value that may hold long lists. */
export function jsonWithLists(value: unknown): Buffer {
  const { text, lists } = textOf(value);
  return Buffer.concat(piecesOf(text, lists));
}

function sum(lists: readonly JsonList[]): number {
  return lists.reduce((bytes, list) => bytes + list.bytes, 0);
}

function textOf(value: unknown): { readonly text: string; readonly lists: readonly JsonList[] } {
  const lists: JsonList[] = [];
  const text = JSON.stringify(value, (_key, part: unknown) => {
    if (!(part instanceof JsonList)) return part;
    lists.push(part);
    return MARK;
  });
  return { text, lists };
}

/** The first and the last piece are not shared with a list. */
function piecesOf(text: string, lists: readonly JsonList[]): readonly Buffer[] {
  if (lists.length === 0) return [Buffer.from(text)];
  return text
    .split(`"${MARK}"`)
    .flatMap((part, index) => [Buffer.from(part), ...(lists[index]?.pieces ?? [])]);
}

/** Marks a result that holds long lists, for whoever makes its text. */
const LISTS = Symbol('lists');

/** The same result, marked. */
export function withLists(result: ExecutionResult): ExecutionResult {
  return { ...result, [LISTS]: true } as ExecutionResult;
}

/** The JSON of a result; of one with long lists in UTF-8. */
export function resultText(result: ExecutionResult): string | Buffer {
  return LISTS in result ? jsonWithLists(result) : JSON.stringify(result);
}

const NAMES: readonly string[] = [GraphQLDeferDirective.name, GraphQLStreamDirective.name];

/** Finds @defer and @stream in what an operation selects. */
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

/** Why an operation cannot run: the first of its directives that is not turned off. A result has one part. */
export function incrementalRefusal(
  directives: readonly DirectiveNode[],
  variables: VariableValues,
): GraphQLError | undefined {
  const directive = directives.find((node) => !isOff(node, variables));
  if (directive === undefined) return undefined;
  return new GraphQLError(
    `@${directive.name.value} asks for incremental delivery, which is experimental and in no edition of the GraphQL specification; leave it out or set its argument "if" to false`,
    { nodes: directive, extensions: { code: 'INCREMENTAL_DELIVERY' satisfies ErrorCode } },
  );
}

function isOff({ arguments: given }: DirectiveNode, { coerced }: VariableValues): boolean {
  const value = given?.find(({ name }) => name.value === 'if')?.value;
  if (value?.kind === Kind.VARIABLE) return coerced[value.name.value] === false;
  return value?.kind === Kind.BOOLEAN && !value.value;
}

/**
 * Replaces what the program threw by "Internal server error", or by "Service Unavailable" with the code of the 503 that
 * REST would answer; what GraphQL itself or a resolver says on purpose (a GraphQLError, of any copy of GraphQL.js) stays.
 * `onMasked` gets the error that is hidden.
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

/** What clients are told in the place of an error of the program. */
export function maskOf(error: unknown): readonly [message: string, code: ErrorCode] {
  return error instanceof StoreUnavailableError
    ? ['Service Unavailable', error.code]
    : ['Internal server error', 'INTERNAL_SERVER_ERROR'];
}

/** Whether a value is of a class of GraphQL.js, whichever copy it is from: `Schema` stands for GraphQLSchema. */
export function isKind<T>(value: unknown, name: string): value is T {
  return Object.prototype.toString.call(value) === `[object GraphQL${name}]`;
}

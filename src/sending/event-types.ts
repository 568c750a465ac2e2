import { isNativeError } from 'node:util/types';
import { createContext, Script } from 'node:vm';
import type { ErrorObject, ValidateFunction } from 'ajv';
import { GenerationalCache } from '../core/generational-cache.ts';
import { isRecord } from '../core/json.ts';
import type { MaybePromise } from '../core/scheduler.ts';
import { EVENT_TYPE, MAX_TYPE } from './filters.ts';
import type { SendingStore, StoredEventType } from './store.ts';

/** Largest schema with its example, in bytes as JSON. */
const MAX_BYTES = 64 * 1024;
/** How long a process uses what it knows of an event type, in milliseconds: others may change it. */
const KEPT_FOR = 1_000;
/** Size of the schemas that are kept, in bytes. */
const CACHE = 8 * 1024 * 1024;
/** Estimated size of a compiled schema for each byte of its JSON. */
const COMPILED = 20;
/** How the event types of Portico itself begin: a test event must fit no schema. */
const OWN_TYPES = 'portico.';
/** Faults of an event that are told. */
const MAX_FAULTS = 20;

/** One fault of an event's data. */
interface EventFault {
  /** A JSON pointer into the data. */
  readonly pointer: string;
  readonly detail: string;
}

/** The data of an event do not have the form that its type asks for. */
export class EventRefusedError extends Error {
  override readonly name = 'EventRefusedError';
  readonly code = 'EVENT_REFUSED';
  readonly faults: readonly EventFault[];

  constructor(type: string, faults: readonly EventFault[], options?: ErrorOptions) {
    super(`the data of the event do not have the form of ${type}`, options);
    this.faults = faults;
  }
}

/** A schema that cannot be used. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
  readonly code = 'SCHEMA';
}

type Validator = ValidateFunction<unknown>;

interface KnownType {
  /** Undefined for a type without a schema. */
  readonly check: Validator | undefined;
  /** Whether a check may take long. */
  readonly isSlow: boolean;
  /** When the type was last changed; 0 if it does not exist. */
  readonly updatedAt: number;
  /** Until when it is used without a look, on the monotonic clock. */
  until: number;
}

/** Loaded with the first schema. */
async function compile(schema: unknown): Promise<Validator> {
  const { Ajv2020 } = await import('ajv/dist/2020.js');
  const ajv = new Ajv2020({ strict: false, allErrors: false, validateFormats: false, logger: false });
  try {
    return ajv.compile(schema as object);
  } catch (error) {
    throw new SchemaError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** Keywords that take long for some data, or schemas that apply themselves. */
const SLOW = /"(?:pattern|patternProperties|uniqueItems|\$ref|\$dynamicRef)":/;
/** Longer schemas may have many branches for each of many items, in characters as JSON. */
const QUICK = 2_000;
/** Longest check of an event, in milliseconds of the thread's processor time. */
const MAX_TIME = 50;
/** The part of it that the first try has, so that a pause for garbage collection leaves time for another. */
const FIRST_TRY = 20;

/** Runs functions for a bounded time. V8 ends them wherever they are, in a regular expression too. */
class BoundedCalls {
  readonly #scope: { call: (() => boolean) | undefined } = { call: undefined };
  readonly #context = createContext(this.#scope);
  readonly #script = new Script('call()');

  /**
   * Throws ERR_SCRIPT_EXECUTION_TIMEOUT after `MAX_TIME`, and what the function throws. V8 ends a call by elapsed
   * time, which on a busy machine passes without work: the function is called again, each time for longer, until
   * the thread has worked for `MAX_TIME`.
   */
  run(call: () => boolean): boolean {
    this.#scope.call = call;
    const before = process.threadCpuUsage();
    try {
      for (let timeout = FIRST_TRY; ; timeout = Math.ceil(timeout * 1.5)) {
        try {
          return this.#script.runInContext(this.#context, { timeout });
        } catch (error) {
          const { user, system } = process.threadCpuUsage(before);
          // The clocks differ by little: without the tenth a call would often be made a third time.
          if (!isTimeout(error) || (user + system) / 1_000 > 0.9 * MAX_TIME) throw error;
        }
      }
    } finally {
      this.#scope.call = undefined;
    }
  }
}

/** The error is of the other context, so that it is no instance of this one's Error. */
const isTimeout = (error: unknown): boolean =>
  isNativeError(error) && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';

function holdsInTime(call: () => boolean): boolean {
  try {
    return new BoundedCalls().run(call);
  } catch {
    return false;
  }
}

/** Event types, of which the process keeps the compiled schemas. */
export class EventTypes {
  readonly #store: Pick<SendingStore, 'eventType'>;
  readonly #kept = new GenerationalCache<KnownType>(CACHE);
  #calls: BoundedCalls | undefined;

  constructor(store: Pick<SendingStore, 'eventType'>) {
    this.#store = store;
  }

  /**
   * Checks the data of an event. Throws or rejects with EventRefusedError; rejects as the store does. The result is a
   * promise if the type has to be read.
   */
  check(type: string, data: unknown): MaybePromise<void> {
    const kept = this.#kept.get(type);
    if (kept !== undefined && kept.until > performance.now()) return this.#check(type, kept, data);
    return this.#load(type).then((known) => this.#check(type, known, data));
  }

  #check(type: string, known: KnownType, data: unknown): void {
    const { check } = known;
    if (check === undefined || this.#holds(type, known, data)) return;
    throw new EventRefusedError(type, (check.errors ?? []).slice(0, MAX_FAULTS).map(faultOf));
  }

  #holds(type: string, { check, isSlow }: KnownType, data: unknown): boolean {
    if (check === undefined || !isSlow) return check?.(data) ?? true;
    this.#calls ??= new BoundedCalls();
    try {
      return this.#calls.run(() => check(data));
    } catch (cause) {
      const detail = `the schema of the type could not be applied to them within ${MAX_TIME} ms`;
      throw new EventRefusedError(type, [{ pointer: '', detail }], { cause });
    }
  }

  /** Forgets a type that this process has changed. */
  forget(type: string): void {
    this.#kept.delete(type);
  }

  /** Reads a type anew; a schema that is still the same is not compiled again. */
  async #load(type: string): Promise<KnownType> {
    const found = await this.#store.eventType(type);
    const { schema, updatedAt = 0 } = found ?? {};
    const until = performance.now() + KEPT_FOR;
    const kept = this.#kept.get(type);
    if (kept?.updatedAt === updatedAt) {
      kept.until = until;
      return kept;
    }
    const check = schema === undefined || schema === null ? undefined : await compile(schema);
    const text = check === undefined ? '' : JSON.stringify(schema);
    const known = { check, isSlow: text.length > QUICK || SLOW.test(text), updatedAt, until };
    this.#kept.delete(type);
    this.#kept.set(type, known, 2_000 + COMPILED * text.length);
    return known;
  }
}

function faultOf({ instancePath, message = 'is not valid', params }: ErrorObject): EventFault {
  const more =
    isRecord(params) && typeof params.additionalProperty === 'string' ? `: ${params.additionalProperty}` : '';
  return { pointer: instancePath, detail: `${message}${more}` };
}

/** Reads an event type from a request. Appends one line per problem to `problems`. Rejects with SchemaError. */
export async function readEventType(
  name: string,
  given: unknown,
  problems: string[],
): Promise<Pick<StoredEventType, 'name' | 'description' | 'schema' | 'example'> | undefined> {
  const count = problems.length;
  if (name.length > MAX_TYPE || !EVENT_TYPE.test(name))
    problems.push(
      `an event type takes words of letters, digits, "_" and "-" with dots between, at most ${MAX_TYPE} characters`,
    );
  if (name.startsWith(OWN_TYPES))
    problems.push(`event types that begin with "${OWN_TYPES}" are those of Portico`);
  if (!isRecord(given)) {
    problems.push('the body must be an object with description, schema and example');
    return undefined;
  }
  const { description = '', schema, example, ...others } = given;
  for (const key of Object.keys(others))
    problems.push(`${key} is not known; description, schema and example are`);
  if (typeof description !== 'string' || description.length > 500)
    problems.push('description must be a text of at most 500 characters');
  if (schema !== undefined && schema !== null && typeof schema !== 'boolean' && !isRecord(schema))
    problems.push('schema must be a JSON Schema (2020-12)');
  if (Buffer.byteLength(JSON.stringify([schema ?? null, example ?? null])) > MAX_BYTES)
    problems.push(`schema and example must have at most ${MAX_BYTES} bytes`);
  if (problems.length > count) return undefined;
  if (schema !== undefined && schema !== null) {
    const check = await compile(schema);
    if (example !== undefined && !holdsInTime(() => check(example))) {
      if ((check.errors ?? []).length === 0) problems.push(`example cannot be checked within ${MAX_TIME} ms`);
      for (const { pointer, detail } of (check.errors ?? []).map(faultOf))
        problems.push(`example${pointer} ${detail}`);
      return undefined;
    }
  }
  return { name, description: String(description), schema, example };
}

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import {
  type DocumentNode,
  GraphQLError,
  Kind,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import type { ErrorCode } from '../../src/core/error-codes.ts';
import { describeError, ExpectedError } from '../../src/core/errors.ts';
import { GenerationalCache } from '../../src/core/generational-cache.ts';
import { type DocumentLimits, exceededLimits } from './limits.ts';
import { Operation, type OperationMeters, type OperationOptions } from './operation.ts';
import type { RequestParams } from './request-params.ts';

/** The options of a document cache. */
interface DocumentCacheOptions {
  readonly limits: DocumentLimits;
  readonly introspection: boolean;
  /** Maximum memory of cached documents and their plans, in bytes. */
  readonly maxBytes: number;
  readonly meters: OperationMeters | undefined;
  readonly operations: Omit<OperationOptions, 'onPlanned'>;
}

/** Upper bounds of the memory of a parsed document, in bytes: a base and an amount per token. */
const DOCUMENT_BYTES = 2_048;
const TOKEN_BYTES = 450;
/** The share of the cache for invalid documents. */
const BAD_SHARE = 1 / 8;
/** Each reported error requires a pass over the text, and ten are enough to read. */
const MAX_ERRORS = 10;

/** Caches the documents that clients send. Each is parsed, checked against the limits and validated once. */
export class DocumentCache {
  readonly #options: DocumentCacheOptions;
  readonly #good: GenerationalCache<Operations>;
  /** Kept apart so that a flood of invalid documents does not evict valid ones. */
  readonly #bad: GenerationalCache<Refused>;

  constructor(options: DocumentCacheOptions) {
    this.#options = options;
    this.#good = new GenerationalCache((1 - BAD_SHARE) * options.maxBytes);
    this.#bad = new GenerationalCache(BAD_SHARE * options.maxBytes);
  }

  /** The operations of a document, or the reason why it is refused. */
  find(query: string): Operations | Refused {
    const { meters } = this.#options;
    const known = this.#good.get(query);
    if (known !== undefined) {
      meters?.lookup('hit');
      return known;
    }
    const found = this.#bad.get(query) ?? this.#read(query);
    meters?.lookup('errors' in found ? 'refused' : 'miss');
    return found;
  }

  #read(query: string): Operations | Refused {
    const { limits, operations: options } = this.#options;
    const document = this.#parse(query);
    if ('errors' in document) {
      this.#bad.set(query, document, bytesOf(query, limits.maxTokens));
      return document;
    }
    const operations = operationsOf(document, {
      ...options,
      onPlanned: (bytes) => this.#good.grow(query, bytes),
    });
    this.#good.set(query, operations, bytesOf(query, document.tokenCount));
    return operations;
  }

  #parse(query: string): DocumentNode | Refused {
    const { limits, introspection, operations } = this.#options;
    const { schema, suggestions } = operations;
    const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
    try {
      const document = parse(query, { maxTokens: limits.maxTokens });
      const exceeded = exceededLimits(document, limits);
      if (exceeded.length > 0) return { errors: exceeded };
      const errors = validate(schema, document, rules, {
        maxErrors: MAX_ERRORS,
        hideSuggestions: !suggestions,
      });
      return errors.length > 0 ? { errors } : document;
    } catch (error) {
      if (error instanceof GraphQLError) return { errors: [error] };
      throw error;
    }
  }
}

/** An upper bound of a cached document's memory; the token count of a refused document may be unknown. */
function bytesOf(query: string, tokens = query.length): number {
  return DOCUMENT_BYTES + 2 * query.length + TOKEN_BYTES * Math.min(tokens, query.length);
}

/** Where to find documents that a request identifies by id or hash. */
interface NamedDocumentsOptions {
  /** Undefined if there are no trusted documents. */
  readonly trusted: TrustedDocuments | undefined;
  /** Undefined if automatic persisted queries are disabled. */
  readonly persisted: PersistedQueries | undefined;
  /** Finds the operations of a text. */
  readonly findText: (text: string) => Operations | Refused;
  /** Whether only trusted documents may run. */
  readonly onlyTrusted: boolean;
  /** Called for each request that is answered or refused here, without `findText`. */
  readonly onLookup: (result: 'hit' | 'refused') => void;
}

/** Apollo Client recognizes these two by code or message, urql by message. */
const NOT_FOUND = refused('PERSISTED_QUERY_NOT_FOUND', 'PersistedQueryNotFound');
const NOT_SUPPORTED = refused('PERSISTED_QUERY_NOT_SUPPORTED', 'PersistedQueryNotSupported');
const MISMATCH = refused('PERSISTED_QUERY_MISMATCH', 'The sha256Hash does not match the query');
const UNKNOWN_ID = refused('DOCUMENT_NOT_FOUND', 'No trusted document has this id');

/** The refusal of a text that is not trusted if only trusted documents may run. */
export const UNTRUSTED = refused('DOCUMENT_REQUIRED', 'Only trusted documents run here; name one by its id');

/** Creates the look-up for requests that identify their document by id or hash, with or without its text. */
export function createFindNamed(
  options: NamedDocumentsOptions,
): (params: RequestParams) => Operations | Refused {
  const { trusted, persisted, findText, onlyTrusted, onLookup } = options;
  const refuse = (reason: Refused): Refused => {
    onLookup('refused');
    return reason;
  };

  /** The trusted document with an id or hash; undefined if there is none. */
  function trustedBy(id: string, text?: string): Operations | Refused | undefined {
    const document = trusted?.find(id);
    if (document === undefined) return undefined;
    if (text !== undefined && text !== document.text) return refuse(MISMATCH);
    onLookup('hit');
    return document.operations;
  }

  function byHash(hash: string): Operations | Refused {
    // The query itself would be refused too.
    if (onlyTrusted) return refuse(UNKNOWN_ID);
    if (persisted === undefined) return refuse(NOT_SUPPORTED);
    const text = persisted.find(hash);
    return text === undefined ? refuse(NOT_FOUND) : findText(text);
  }

  function register(hash: string, text: string): Operations | Refused {
    if (onlyTrusted || persisted === undefined) return findText(text);
    if (!persisted.matches(hash, text)) return refuse(MISMATCH);
    const found = findText(text);
    if (!('errors' in found)) persisted.register(hash, text);
    return found;
  }

  return ({ query, documentId, hash }) => {
    if (documentId !== undefined) return trustedBy(documentId) ?? refuse(UNKNOWN_ID);
    // All other requests have a hash.
    const given = hash ?? '';
    return trustedBy(given, query) ?? (query === undefined ? byHash(given) : register(given, query));
  };
}

/**
 * Creates a refusal once, to be reused. Intermediaries must not cache it: the document may be registered a
 * moment later.
 */
function refused(code: ErrorCode, message: string): Refused {
  return {
    errors: [new GraphQLError(message, { extensions: { code } })],
    headers: { 'cache-control': 'no-store' },
  };
}

/** Memory of an entry in addition to its text, in bytes: the hash, the entry and its slot in the map. */
const ENTRY_BYTES = 512;

/** Texts that clients have registered by SHA-256, bounded in bytes (Apollo's automatic persisted queries). */
export class PersistedQueries {
  readonly #texts: GenerationalCache<string>;

  constructor(maxBytes: number) {
    this.#texts = new GenerationalCache(maxBytes);
  }

  /** The registered text with a hash; undefined if there is none. */
  find(hash: string): string | undefined {
    return this.#texts.get(hash);
  }

  /** Whether a text has the hash; a registered text is not hashed again. */
  matches(hash: string, text: string): boolean {
    return this.#texts.get(hash) === text || sha256(text) === hash;
  }

  /** Registers a text by its hash, which must match. */
  register(hash: string, text: string): void {
    if (this.#texts.get(hash) === undefined) this.#texts.set(hash, text, ENTRY_BYTES + 2 * text.length);
  }
}

/** Where trusted documents come from: the path of a file or folder, or the documents by id. */
export type DocumentSource = string | Readonly<Record<string, string>>;

/** A trusted document as read. */
interface NamedDocument {
  readonly id: string;
  readonly text: string;
  /** Its location, for messages. */
  readonly place: string;
}

const APOLLO_FORMAT = 'apollo-persisted-query-manifest';
const EXTENSION = '.graphql';
const EXPECTED = 'must be an object that maps ids to document texts, or an Apollo manifest';

/**
 * Reads trusted documents from a folder of `<id>.graphql` files, or from a JSON file that maps ids to
 * documents (such as Relay's persisted queries) or is an Apollo manifest. Throws DocumentsError.
 */
export function readDocuments(source: DocumentSource): readonly NamedDocument[] {
  if (typeof source !== 'string') return fromMap(source, 'documents');
  let documents: readonly NamedDocument[];
  try {
    documents = statSync(source).isDirectory() ? fromFolder(source) : fromFile(source);
  } catch (error) {
    if (error instanceof DocumentsError) throw error;
    throw new DocumentsError([`${source} cannot be read: ${describeError(error)}`], { cause: error });
  }
  if (documents.length === 0) throw new DocumentsError([`${source} holds no documents`]);
  return documents;
}

function fromFolder(folder: string): readonly NamedDocument[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(EXTENSION));
  return names.sort().map((name) => {
    const place = join(folder, name);
    return { id: name.slice(0, -EXTENSION.length), text: readFileSync(place, 'utf8'), place };
  });
}

function fromFile(file: string): readonly NamedDocument[] {
  const text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new DocumentsError([`${file} is not valid JSON: ${describeError(cause)}`], { cause });
  }
  if (!isMap(json)) throw new DocumentsError([`${file} ${EXPECTED}`]);
  return 'format' in json && 'operations' in json ? fromManifest(json, file) : fromMap(json, file);
}

function fromManifest(
  { format, version, operations }: Readonly<Record<string, unknown>>,
  file: string,
): readonly NamedDocument[] {
  if (format !== APOLLO_FORMAT || version !== 1 || !Array.isArray(operations)) {
    throw new DocumentsError([`${file} is not an ${APOLLO_FORMAT} of version 1 with a list of operations`]);
  }
  return operations.map((operation: unknown, index) => {
    const { id, body } = isMap(operation) ? operation : {};
    if (typeof id === 'string' && typeof body === 'string') return { id, text: body, place: file };
    throw new DocumentsError([`${file}: operations[${index}] needs an id and a body`]);
  });
}

function fromMap(map: Readonly<Record<string, unknown>>, place: string): readonly NamedDocument[] {
  return Object.entries(map).map(([id, text]) => {
    if (typeof text === 'string') return { id, text, place };
    throw new DocumentsError([`${place}: the document "${id}" is not a string; the file ${EXPECTED}`]);
  });
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type Options = Omit<OperationOptions, 'onPlanned'>;

const PREFIX = 'sha256:';

/** A trusted document. It is parsed when it first runs, and then kept. */
class TrustedDocument {
  readonly text: string;
  readonly #options: Options;
  #operations: Operations | undefined;

  constructor(text: string, options: Options) {
    this.text = text;
    this.#options = options;
  }

  get operations(): Operations {
    this.#operations ??= operationsOf(parse(this.text), { ...this.#options, onPlanned() {} });
    return this.#operations;
  }
}

/** The operator's documents by id, SHA-256 and text. They are never evicted. */
export class TrustedDocuments {
  readonly #byId = new Map<string, TrustedDocument>();
  readonly #byText = new Map<string, TrustedDocument>();

  /**
   * Validates all documents; they are exempt from the limits for clients' documents. Throws DocumentsError.
   */
  constructor(documents: readonly NamedDocument[], options: Options) {
    const problems: string[] = [];
    for (const { id, text, place } of documents) {
      let document = this.#byText.get(text);
      if (document === undefined) {
        const problem = problemOf(text, options);
        if (problem !== undefined) problems.push(`${place}: the document "${id}": ${problem}`);
        document = new TrustedDocument(text, options);
        this.#byText.set(text, document);
      }
      const hash = sha256(text);
      const key = keyOf(id);
      const taken = this.#byId.get(key);
      if (taken !== undefined && taken.text !== text) {
        problems.push(`${place}: two documents have the id "${id}"`);
      } else if (key !== id && key !== hash) {
        problems.push(`${place}: the id "${id}" is not the SHA-256 of its document, ${hash}`);
      }
      this.#byId.set(key, document);
    }
    if (problems.length > 0) throw new DocumentsError(problems);
    // Explicit ids take precedence over hashes.
    for (const document of this.#byText.values()) {
      const hash = sha256(document.text);
      if (!this.#byId.has(hash)) this.#byId.set(hash, document);
    }
  }

  /** The document with an id or SHA-256, with or without the prefix `sha256:`. */
  find(id: string): TrustedDocument | undefined {
    return this.#byId.get(keyOf(id));
  }

  /** The document with exactly this text. */
  withText(text: string): TrustedDocument | undefined {
    return this.#byText.get(text);
  }
}

function keyOf(id: string): string {
  return id.startsWith(PREFIX) ? id.slice(PREFIX.length) : id;
}

/** Why a document cannot be trusted; undefined if it is valid. */
function problemOf(text: string, { schema }: Options): string | undefined {
  try {
    const document = parse(text);
    const [error] = validate(schema, document, undefined, { maxErrors: 1 });
    if (error !== undefined) return withPlace(error);
    const isOperation = document.definitions.some(({ kind }) => kind === Kind.OPERATION_DEFINITION);
    return isOperation ? undefined : 'it has no operation';
  } catch (error) {
    if (error instanceof GraphQLError) return withPlace(error);
    throw error;
  }
}

function withPlace({ message, locations }: GraphQLError): string {
  const [at] = locations ?? [];
  return at === undefined ? message : `${message} (line ${at.line}, column ${at.column})`;
}

/** The SHA-256 of a text's UTF-8 bytes, in lower-case hex. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Maximum number of problems listed in a message. */
const MAX_LISTED = 20;

/** The trusted documents are invalid. */
export class DocumentsError extends ExpectedError {
  override readonly name = 'DocumentsError';
  readonly code = 'DOCUMENTS_INVALID';

  /** `problems`: one line each, naming the file and the document. */
  constructor(problems: readonly string[], options?: ErrorOptions) {
    const listed = problems.slice(0, MAX_LISTED).map((problem) => `  - ${problem}`);
    const others = problems.length - listed.length;
    if (others > 0) listed.push(`  - and ${others} more`);
    super(`The trusted GraphQL documents cannot be used:\n${listed.join('\n')}`, options);
  }
}

/** The operations of a document by name; a document's only operation is also stored under undefined. */
export type Operations = ReadonlyMap<string | undefined, Operation>;

/** Why a document is refused. */
export interface Refused {
  readonly errors: readonly GraphQLError[];
  /** Headers of the refusal, by name in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Creates the operations of a valid document. */
function operationsOf(document: DocumentNode, options: OperationOptions): Operations {
  const operations = new Map<string | undefined, Operation>();
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    operations.set(definition.name?.value, new Operation(document, definition, options));
  }
  const [only, second] = operations.values();
  if (only !== undefined && second === undefined) operations.set(undefined, only);
  return operations;
}

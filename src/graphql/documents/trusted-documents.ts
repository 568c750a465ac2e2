import { GraphQLError, Kind, parse, validate } from 'graphql';
import type { OperationOptions } from '../operation.ts';
import { DocumentsError } from './documents-error.ts';
import { type Operations, operationsOf } from './operations.ts';
import type { NamedDocument } from './read-documents.ts';
import { sha256 } from './sha256.ts';

type Options = Omit<OperationOptions, 'onPlanned'>;

const PREFIX = 'sha256:';

/** A document that the operator trusts. It is parsed when it runs for the first time, and then kept. */
export class TrustedDocument {
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

/** Documents of the operator's by their ids, their SHA-256 and their texts; none is ever forgotten. */
export class TrustedDocuments {
  readonly #byId = new Map<string, TrustedDocument>();
  readonly #byText = new Map<string, TrustedDocument>();

  /** Validates all of them; the limits on documents are for those of clients. Throws DocumentsError. */
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
    // An id that somebody chose comes first.
    for (const document of this.#byText.values()) {
      const hash = sha256(document.text);
      if (!this.#byId.has(hash)) this.#byId.set(hash, document);
    }
  }

  /** The document with this id or this SHA-256, with the prefix `sha256:` or without it. */
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

/** Why a document cannot be trusted to run. */
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

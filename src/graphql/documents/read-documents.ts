import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describeError } from '../../core/describe-error.ts';
import { DocumentsError } from './documents-error.ts';

/** Where trusted documents come from: the path of a file or folder, or the documents by their ids. */
export type DocumentSource = string | Readonly<Record<string, string>>;

/** A document as it was read. */
export interface NamedDocument {
  readonly id: string;
  readonly text: string;
  /** Where it was read, for messages. */
  readonly place: string;
}

const APOLLO_FORMAT = 'apollo-persisted-query-manifest';
const EXTENSION = '.graphql';
const EXPECTED = 'must be an object with the text of each document by its id, or a manifest of Apollo';

/**
 * Reads trusted documents: a folder of `<id>.graphql` files, or a JSON file with documents by their ids (Relay's
 * persisted queries among others) or with Apollo's manifest. Throws DocumentsError.
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
    throw new DocumentsError([`${file} is no JSON: ${describeError(cause)}`], { cause });
  }
  if (!isMap(json)) throw new DocumentsError([`${file} ${EXPECTED}`]);
  return 'format' in json && 'operations' in json ? fromManifest(json, file) : fromMap(json, file);
}

function fromManifest(
  { format, version, operations }: Readonly<Record<string, unknown>>,
  file: string,
): readonly NamedDocument[] {
  if (format !== APOLLO_FORMAT || version !== 1 || !Array.isArray(operations)) {
    throw new DocumentsError([`${file} is no ${APOLLO_FORMAT} of version 1 with a list of operations`]);
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
    throw new DocumentsError([`${place}: the document "${id}" is no text; the file ${EXPECTED}`]);
  });
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

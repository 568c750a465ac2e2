/** What a request to an endpoint of the user's own brings. */
export interface EndpointRequest {
  /** The segment below the endpoint, under the name that `path` declares; without it when it was left out. */
  readonly path: Readonly<Record<string, string>>;
  /** The declared query parameters that were given. */
  readonly query: Readonly<Record<string, string>>;
}

/** A request that writes. `body` is its JSON, parsed strictly; undefined when it has none. */
export interface EndpointWrite extends EndpointRequest {
  readonly body: unknown;
}

/**
 * What an endpoint can do, by GET, POST and DELETE. A string is answered as plain text, bytes as they are,
 * any other value as JSON; nothing (undefined or null) is 404 when read, else 204.
 */
interface EndpointOperations {
  read(request: EndpointRequest): unknown;
  write(request: EndpointWrite): unknown;
  delete(request: EndpointRequest): unknown;
}

type AtLeastOne<T> = { [K in keyof T]: Pick<T, K> & Partial<Omit<T, K>> }[keyof T];

/** A management endpoint of the user's own (contract 4.3), with at least one operation. */
export type CustomEndpoint = {
  /** Its path under the base path: a lower-case letter, then letters, digits, "." and "-". */
  readonly id: string;
  /** The name of a segment below the id, as in `/<id>/<name>`; `name?` when it may be left out. */
  readonly path?: string | undefined;
  /** The names of query parameters; `name?` for one that may be missing, any other is 400 without it. */
  readonly query?: readonly string[] | undefined;
} & AtLeastOne<EndpointOperations>;

/** A declared parameter. */
export interface EndpointParameter {
  readonly name: string;
  readonly optional: boolean;
}

/** Reads `name` or `name?`; undefined when it is neither. */
export function parseParameter(text: unknown): EndpointParameter | undefined {
  const [, name, mark] = (typeof text === 'string' && /^([A-Za-z]\w*)(\??)$/.exec(text)) || [];
  return name === undefined ? undefined : { name, optional: mark === '?' };
}

import { PROBLEM_TYPE, reasonPhrase } from '@portico/transport';
import { ERROR_CODES, type ErrorCode } from '../core/error-codes.ts';

/** A parameter of an operation. */
export interface ApiParameter {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly required?: boolean;
  /** How an object becomes several parameters. */
  readonly style?: 'form';
  readonly explode?: boolean;
}

/** A reference to a component of the document. */
export interface ApiReference {
  readonly $ref: string;
}

/** A reply of an operation with one status. */
export interface ApiReply {
  readonly description: string;
  /** The body by media type; undefined for an empty body. */
  readonly content?: Readonly<Record<string, Schema>>;
  /** Additional header fields, with their descriptions or with references to those of the door. */
  readonly headers?: Readonly<Record<string, string | ApiReference>>;
}

/** The operation of a method at a path. */
export interface ApiOperation {
  /** The `operationId`. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  /** Parameters, or references to those of the door. */
  readonly parameters?: readonly (ApiParameter | ApiReference)[];
  /** The body, by media type. */
  readonly body?: { readonly required: boolean; readonly content: Readonly<Record<string, Schema>> };
  /** Replies by status. */
  readonly replies: Readonly<Record<number, ApiReply>>;
  /** Codes of refusals, in addition to those of every request to the door. */
  readonly refusals?: readonly ErrorCode[];
  /** Additional content of refusals, by status. */
  readonly refusalContent?: Readonly<Record<number, Readonly<Record<string, Schema>>>>;
}

/** The operations of a path. */
export type ApiPath = Readonly<Partial<Record<'get' | 'post' | 'put' | 'patch' | 'delete', ApiOperation>>>;

/** The description of one door, or of a part of it. */
export interface DoorApi {
  readonly door: string;
  /** The tag of its operations; default the door. */
  readonly tag?: string;
  readonly about: string;
  readonly paths: Readonly<Record<string, ApiPath>>;
  /** The schemas that operations refer to. */
  readonly schemas: Readonly<Record<string, Schema>>;
  /** The parameters that operations refer to. */
  readonly parameters?: Readonly<Record<string, ApiParameter>>;
  /** The descriptions of header fields that replies refer to, by component name. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The form of a refusal for clients that do not accept problem details. */
  readonly refusal: { readonly type: string; readonly schema: Schema };
  /** Codes of refusals of any request to the door, in addition to those of every door. */
  readonly refusals?: readonly ErrorCode[];
  /** How clients authenticate; undefined if the door is open. */
  readonly security?: {
    readonly schemes: Readonly<Record<string, Schema>>;
    /** The schemes that an operation accepts, each with its scopes; undefined if it needs no credentials. */
    needs(path: string, method: string): Readonly<Record<string, readonly string[]>> | undefined;
    /** Codes of refusals of operations that need credentials. */
    readonly refusals: readonly ErrorCode[];
  };
}

/** A parameter of a path. */
export function pathParameter(name: string, description: string, schema: Schema): ApiParameter {
  return { in: 'path', name, description, schema, required: true };
}

/** An optional parameter of the query. */
export function queryParameter(name: string, description: string, schema: Schema): ApiParameter {
  return { in: 'query', name, description, schema };
}

/** Codes of refusals of any request to any door. */
const ANYWHERE = [
  'BAD_REQUEST',
  'DUPLICATE_FIELD',
  'DUPLICATE_HOST',
  'MISSING_HOST',
  'NO_WEBSOCKET',
  'TRANSFER_ENCODING_1_0',
  'UNKNOWN_EXPECTATION',
  'UNKNOWN_HOST',
  'TOO_MANY_HEADERS',
  'INTERNAL',
] as const satisfies readonly ErrorCode[];

const PROBLEM = object(
  {
    type: text('`urn:problem-type:portico:` and the code.', { format: 'uri' }),
    title: text('The meaning of the code, and what to do.'),
    status: integer('The status of the reply.'),
    detail: text('What was wrong with this request.'),
    code: text('A stable code; docs/ERRORS.md lists all of them.'),
    'errors?': listOf(object({ detail: text(), 'pointer?': text('A JSON Pointer as a fragment.') })),
  },
  'A refusal as problem details (RFC 9457), for clients that accept application/problem+json.',
);

/** Header fields of every reply and every refusal, by component name. */
const HEADERS = {
  RequestId: ['x-request-id', 'The id of the request, also in the log.'],
  ErrorCode: ['x-error-code', 'The code of the refusal.'],
} as const;

const headerRef = (name: keyof typeof HEADERS) => ({
  [HEADERS[name][0]]: { $ref: `#/components/headers/${name}` },
});

/** The service that a document describes. */
interface ApiInfo {
  readonly title: string;
  readonly version: string;
  /** The base URL of each door. */
  readonly servers: Readonly<Record<string, string>>;
}

/** The OpenAPI 3.1 document of the given doors. Pure. */
export function openApiDocument(doors: readonly DoorApi[], { title, version, servers }: ApiInfo) {
  const secured = doors.flatMap(({ security }) => security ?? []);
  const schemas = Object.assign({}, ...doors.map((door) => door.schemas)) as Record<string, Schema>;
  const parameters = Object.assign({}, ...doors.map((door) => door.parameters)) as object;
  const headers = Object.assign({}, ...doors.map((door) => door.headers)) as Record<string, string>;
  const shared = new SharedResponses();
  const paths = Object.fromEntries(doors.flatMap((door) => pathsOf(door, servers[door.door], shared)));
  return {
    openapi: '3.1.0',
    info: {
      title,
      version,
      description:
        'Each door has its own server. Every path with GET also accepts HEAD, and every path accepts OPTIONS. A refusal has a code in `x-error-code`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: Array.from(new Set(doors.map(({ door }) => door))).flatMap((door) => {
      const url = servers[door];
      return url === undefined ? [] : [{ url, description: `The ${door} door.` }];
    }),
    tags: doors.map(({ door, tag = door, about }) => ({ name: tag, description: about })),
    security: [],
    paths,
    components: {
      schemas: { Problem: PROBLEM, ...schemas },
      ...(Object.keys(parameters).length === 0 ? {} : { parameters }),
      responses: Object.fromEntries(shared.byName),
      headers: headersOf({ RequestId: HEADERS.RequestId[1], ErrorCode: HEADERS.ErrorCode[1], ...headers }),
      ...(secured.length === 0
        ? {}
        : { securitySchemes: Object.assign({}, ...secured.map(({ schemes }) => schemes)) as object }),
    },
  };
}

function pathsOf(door: DoorApi, url: string | undefined, shared: SharedResponses) {
  return Object.entries(door.paths).map(([path, operations]) => [
    path,
    {
      ...(url === undefined ? {} : { servers: [{ url }] }),
      ...Object.fromEntries(
        Object.entries(operations).map(([method, each]) => [
          method,
          describe(door, each, door.security?.needs(path, method), shared),
        ]),
      ),
    },
  ]);
}

function describe(
  door: DoorApi,
  operation: ApiOperation,
  needs: Readonly<Record<string, readonly string[]>> | undefined,
  shared: SharedResponses,
) {
  const { id, summary, description, parameters = [], body, replies, refusals = [] } = operation;
  const secured = needs === undefined ? undefined : door.security;
  return {
    operationId: id,
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [door.tag ?? door.door],
    ...(needs === undefined
      ? {}
      : { security: Object.entries(needs).map(([scheme, scopes]) => ({ [scheme]: scopes })) }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: body.required, content: contentOf(body.content) } }),
    responses: {
      ...Object.fromEntries(Object.entries(replies).map(([status, reply]) => [status, replyOf(reply)])),
      ...refusalsOf(
        door,
        [...ANYWHERE, ...(door.refusals ?? []), ...(secured?.refusals ?? []), ...refusals],
        operation,
        shared,
      ),
    },
  };
}

function replyOf({ description, content, headers = {} }: ApiReply) {
  return {
    description,
    headers: {
      ...headerRef('RequestId'),
      ...headersOf(headers),
    },
    ...(content === undefined ? {} : { content: contentOf(content) }),
  };
}

/** A response for each status of the codes, except those that `replies` describes already. */
function refusalsOf(
  door: DoorApi,
  codes: readonly ErrorCode[],
  { replies, refusalContent = {} }: ApiOperation,
  shared: SharedResponses,
) {
  const { type, schema } = door.refusal;
  const all: Readonly<Record<ErrorCode, { readonly status?: number; readonly text: string }>> = ERROR_CODES;
  const byStatus = Map.groupBy([...new Set(codes)].sort(), (code) => all[code].status ?? 500);
  const own = Array.from(byStatus).filter(([status]) => replies[status] === undefined);
  const described = own.map(([status, of]) => {
    const content = contentOf({
      [type]: schema,
      ...(type === PROBLEM_TYPE ? {} : { [PROBLEM_TYPE]: named('Problem') }),
      ...refusalContent[status],
    });
    const same = JSON.stringify([status, of, content]);
    const response = () => ({
      description: [`${reasonPhrase(status)}.`, ...of.map((code) => `- \`${code}\`: ${all[code].text}`)].join(
        '\n',
      ),
      headers: { ...headerRef('RequestId'), ...headerRef('ErrorCode') },
      content,
    });
    return [status, shared.refer(`${door.door}${status}`, same, response)];
  });
  return Object.fromEntries(described);
}

function contentOf(content: Readonly<Record<string, Schema>>) {
  return Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, { schema }]));
}

/** Header objects by key. */
function headersOf(headers: Readonly<Record<string, string | ApiReference>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([key, given]) => [
      key,
      typeof given === 'string' ? { description: given, schema: { type: 'string' } } : given,
    ]),
  );
}

/** A JSON Schema of draft 2020-12, which OpenAPI 3.1 uses. */
export type Schema = Readonly<Record<string, unknown>>;

/** An object with these members, of which those whose names end with `?` are optional. It may have others. */
export function object(members: Readonly<Record<string, Schema>>, description?: string): Schema {
  const named = Object.entries(members).map(([name, schema]) => [name.replace(/\?$/, ''), schema] as const);
  const required = Object.keys(members).filter((name) => !name.endsWith('?'));
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(named),
  };
}

/** An object with arbitrary names, whose values have one schema. */
export function mapOf(values: Schema, description?: string): Schema {
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    additionalProperties: values,
  };
}

/** A list whose items have one schema. */
export function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

/** A text. */
export function text(description?: string, more: Schema = {}): Schema {
  return { type: 'string', ...(description === undefined ? {} : { description }), ...more };
}

/** One of the given texts. */
export function oneOfTexts(values: readonly string[], description?: string): Schema {
  return text(description, { enum: values });
}

/** A text that may be null. */
export function textOrNull(description?: string, more: Schema = {}): Schema {
  return { ...text(description, more), type: ['string', 'null'] };
}

/** A whole number. */
function integer(description?: string, more: Schema = {}): Schema {
  return { type: 'integer', ...(description === undefined ? {} : { description }), ...more };
}

/** A time in ISO 8601. */
export const TIME = text(undefined, { format: 'date-time' });

/** A reference to a schema of the components. */
export function named(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/**
 * Collects responses that operations share, since most refusals apply to many of them. Each is in the
 * document once, under a name.
 */
class SharedResponses {
  /** Responses by name, for the components of the document. */
  readonly byName = new Map<string, object>();
  readonly #names = new Map<string, string>();

  /** Returns a reference to a response, whose name begins with `kind`. `same` is equal for equal responses. */
  refer(kind: string, same: string, response: () => object): ApiReference {
    const known = this.#names.get(same);
    const name = known ?? this.#newName(kind);
    if (known === undefined) {
      this.#names.set(same, name);
      this.byName.set(name, response());
    }
    return { $ref: `#/components/responses/${name}` };
  }

  #newName(kind: string): string {
    let name = kind;
    for (let i = 2; this.byName.has(name); i++) name = `${kind}_${i}`;
    return name;
  }
}

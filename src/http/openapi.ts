import { PROBLEM_TYPE, reasonPhrase } from '@portico/transport';
import { ERROR_CODES, type ErrorCode } from '../core/error-codes.ts';

/** A parameter of an operation. */
export interface ApiParameter {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly required?: boolean;
}

/** What an operation may answer with one status. */
export interface ApiReply {
  readonly description: string;
  /** By media type; none for an empty body. */
  readonly content?: Readonly<Record<string, Schema>>;
  /** Further header fields, with what they hold. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a method does at a path. */
export interface ApiOperation {
  /** A name for programs. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly ApiParameter[];
  /** The body, by media type. */
  readonly body?: { readonly required: boolean; readonly content: Readonly<Record<string, Schema>> };
  /** By status. */
  readonly replies: Readonly<Record<number, ApiReply>>;
  /** Why it may be refused, beside what any request to the door may be refused for. */
  readonly refusals?: readonly ErrorCode[];
  /** Further content of refusals, by status. */
  readonly refusalContent?: Readonly<Record<number, Readonly<Record<string, Schema>>>>;
}

/** The operations of a path. */
export type ApiPath = Readonly<Partial<Record<'get' | 'post' | 'put' | 'delete', ApiOperation>>>;

/** One door: its operations, and what all of them share. */
export interface DoorApi {
  readonly door: string;
  readonly about: string;
  readonly paths: Readonly<Record<string, ApiPath>>;
  /** The schemas that operations name. */
  readonly schemas: Readonly<Record<string, Schema>>;
  /** How the door writes a refusal for clients that do not take problem details. */
  readonly refusal: { readonly type: string; readonly schema: Schema };
  /** Why any request to it may be refused, beside what every door refuses. */
  readonly refusals?: readonly ErrorCode[];
  /** How clients authenticate, if they have to. */
  readonly security?: {
    readonly schemes: Readonly<Record<string, Schema>>;
    /** The schemes that an operation takes, each with its scopes; undefined for one that needs none. */
    needs(path: string, method: string): Readonly<Record<string, readonly string[]>> | undefined;
    /** Why an operation that needs one may be refused. */
    readonly refusals: readonly ErrorCode[];
  };
}

/** The parameter of a path. */
export function pathParameter(name: string, description: string, schema: Schema): ApiParameter {
  return { in: 'path', name, description, schema, required: true };
}

/** An optional parameter of the query. */
export function queryParameter(name: string, description: string, schema: Schema): ApiParameter {
  return { in: 'query', name, description, schema };
}

/** Why a request to any door may be refused. */
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
    title: text('What the code means, and what to do.'),
    status: integer('The status of the reply.'),
    detail: text('What was wrong this time.'),
    code: text('A stable code; docs/ERRORS.md lists all of them.'),
    'errors?': listOf(object({ detail: text(), 'pointer?': text('A JSON Pointer as a fragment.') })),
  },
  'A refusal as problem details (RFC 9457), for clients that accept application/problem+json.',
);

/** The header fields of every reply and of every refusal, by the names of their components. */
const HEADERS = {
  RequestId: ['x-request-id', 'The id of the request, which the log has too.'],
  ErrorCode: ['x-error-code', 'The code of the refusal.'],
} as const;

const headerRef = (name: keyof typeof HEADERS) => ({
  [HEADERS[name][0]]: { $ref: `#/components/headers/${name}` },
});

/** What a document says of the service. */
export interface ApiInfo {
  readonly title: string;
  readonly version: string;
  /** The base URL of each door. */
  readonly servers: Readonly<Record<string, string>>;
}

/** The OpenAPI 3.1 document of some doors. Pure. */
export function openApiDocument(doors: readonly DoorApi[], { title, version, servers }: ApiInfo) {
  const secured = doors.flatMap(({ security }) => security ?? []);
  const schemas = Object.assign({}, ...doors.map((door) => door.schemas)) as Record<string, Schema>;
  const shared = new SharedResponses();
  const paths = Object.fromEntries(doors.flatMap((door) => pathsOf(door, servers[door.door], shared)));
  return {
    openapi: '3.1.0',
    info: {
      title,
      version,
      description:
        'Each door has a server of its own. Every GET takes HEAD too, every path OPTIONS. A refusal has a code in `x-error-code`.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: doors.flatMap(({ door }) => {
      const url = servers[door];
      return url === undefined ? [] : [{ url, description: `The ${door} door.` }];
    }),
    tags: doors.map(({ door, about }) => ({ name: door, description: about })),
    security: [],
    paths,
    components: {
      schemas: { Problem: PROBLEM, ...schemas },
      responses: Object.fromEntries(shared.byName),
      headers: headersOf(HEADERS),
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
    tags: [door.door],
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
      ...headersOf(Object.fromEntries(Object.entries(headers).map((each) => [each[0], each]))),
    },
    ...(content === undefined ? {} : { content: contentOf(content) }),
  };
}

/** A response for each status that the codes have; one that is a reply too is described there. */
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
  const described = own.map(([status, of]) => [
    status,
    shared.refer(`${door.door}${status}`, {
      description: [`${reasonPhrase(status)}.`, ...of.map((code) => `- \`${code}\`: ${all[code].text}`)].join(
        '\n',
      ),
      headers: { ...headerRef('RequestId'), ...headerRef('ErrorCode') },
      content: contentOf({ [type]: schema, [PROBLEM_TYPE]: named('Problem'), ...refusalContent[status] }),
    }),
  ]);
  return Object.fromEntries(described);
}

function contentOf(content: Readonly<Record<string, Schema>>) {
  return Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, { schema }]));
}

/** Header objects, by what they are called where they stand. */
function headersOf(headers: Readonly<Record<string, readonly [name: string, description: string]>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([key, [, description]]) => [
      key,
      { description, schema: { type: 'string' } },
    ]),
  );
}

/** A JSON Schema of draft 2020-12, as OpenAPI 3.1 has it. */
export type Schema = Readonly<Record<string, unknown>>;

/** An object with these members; those whose name ends with `?` may be absent. Others may be there too. */
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

/** An object of any names, each with a value of one schema. */
export function mapOf(values: Schema, description?: string): Schema {
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    additionalProperties: values,
  };
}

/** A list of items of one schema. */
export function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

/** A text; the description says what it holds. */
export function text(description?: string, more: Schema = {}): Schema {
  return { type: 'string', ...(description === undefined ? {} : { description }), ...more };
}

/** One of some texts. */
export function oneOfTexts(values: readonly string[], description?: string): Schema {
  return text(description, { enum: values });
}

/** A text that may be null. */
export function textOrNull(description?: string, more: Schema = {}): Schema {
  return { ...text(description, more), type: ['string', 'null'] };
}

/** A number that is whole. */
export function integer(description?: string, more: Schema = {}): Schema {
  return { type: 'integer', ...(description === undefined ? {} : { description }), ...more };
}

/** A time in ISO 8601. */
export const TIME = text(undefined, { format: 'date-time' });

/** A schema of the components, by its name. */
export function named(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** The responses that operations share: most refusals are those of many. Each is in the document once, under a name. */
export class SharedResponses {
  /** By name, for the components of the document. */
  readonly byName = new Map<string, object>();
  readonly #names = new Map<string, string>();

  /** A reference to a response; its name begins with `kind`. */
  refer(kind: string, response: object): { readonly $ref: string } {
    const text = JSON.stringify(response);
    const known = this.#names.get(text);
    const name = known ?? this.#newName(kind);
    if (known === undefined) {
      this.#names.set(text, name);
      this.byName.set(name, response);
    }
    return { $ref: `#/components/responses/${name}` };
  }

  #newName(kind: string): string {
    let name = kind;
    for (let i = 2; this.byName.has(name); i++) name = `${kind}_${i}`;
    return name;
  }
}

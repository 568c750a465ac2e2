import { ERROR_CODES, type ErrorCode } from '../../core/error-codes.ts';
import { reasonPhrase } from '../problem.ts';
import { PROBLEM_TYPE } from '../problem-details.ts';
import type { ApiOperation, ApiReply, DoorApi } from './api.ts';
import { integer, listOf, named, object, type Schema, text } from './schema.ts';
import { SharedResponses } from './shared-responses.ts';

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

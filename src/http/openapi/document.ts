import { ERROR_CODES, type ErrorCode } from '../../core/error-codes.ts';
import { reasonPhrase } from '../problem.ts';
import { PROBLEM_TYPE } from '../problem-details.ts';
import type { ApiOperation, ApiReply, DoorApi } from './api.ts';
import { integer, listOf, named, object, type Schema, text } from './schema.ts';

/** Why a request to any door may be refused. */
const ANYWHERE = [
  'BAD_REQUEST',
  'DUPLICATE_HOST',
  'MISSING_HOST',
  'NO_WEBSOCKET',
  'TRANSFER_ENCODING_1_0',
  'UNKNOWN_EXPECTATION',
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

const EVERY_REPLY = { 'x-request-id': 'The id of the request, which the log has too.' };
const EVERY_REFUSAL = { ...EVERY_REPLY, 'x-error-code': 'The code of the refusal.' };

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
    paths: Object.fromEntries(doors.flatMap((door) => pathsOf(door, servers[door.door]))),
    components: {
      schemas: { Problem: PROBLEM, ...schemas },
      ...(secured.length === 0
        ? {}
        : { securitySchemes: Object.fromEntries(secured.map(({ name, scheme }) => [name, scheme])) }),
    },
  };
}

function pathsOf(door: DoorApi, url: string | undefined) {
  return Object.entries(door.paths).map(([path, operations]) => [
    path,
    {
      ...(url === undefined ? {} : { servers: [{ url }] }),
      ...Object.fromEntries(
        Object.entries(operations).map(([method, each]) => [method, describe(door, path, each)]),
      ),
    },
  ]);
}

function describe(door: DoorApi, path: string, operation: ApiOperation) {
  const { id, summary, description, parameters = [], body, replies, refusals = [] } = operation;
  const { security } = door;
  const secured = security?.paths.test(path) === true ? security : undefined;
  return {
    operationId: id,
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [door.door],
    ...(secured === undefined ? {} : { security: [{ [secured.name]: [] }] }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: body.required, content: contentOf(body.content) } }),
    responses: {
      ...Object.fromEntries(Object.entries(replies).map(([status, reply]) => [status, replyOf(reply)])),
      ...refusalsOf(door, [...ANYWHERE, ...(secured?.refusals ?? []), ...refusals], replies),
    },
  };
}

function replyOf({ description, content, headers = {} }: ApiReply) {
  return {
    description,
    headers: headersOf({ ...EVERY_REPLY, ...headers }),
    ...(content === undefined ? {} : { content: contentOf(content) }),
  };
}

/** A response for each status that the codes have; one that is a reply too is described there. */
function refusalsOf(door: DoorApi, codes: readonly ErrorCode[], replies: ApiOperation['replies']) {
  const { type, schema } = door.refusal;
  const all: Readonly<Record<ErrorCode, { readonly status?: number; readonly text: string }>> = ERROR_CODES;
  const byStatus = Map.groupBy([...new Set(codes)].sort(), (code) => all[code].status ?? 500);
  const described = Array.from(byStatus, ([status, of]) => [
    status,
    {
      description: [`${reasonPhrase(status)}.`, ...of.map((code) => `- \`${code}\`: ${all[code].text}`)].join(
        '\n',
      ),
      headers: headersOf(EVERY_REFUSAL),
      content: contentOf({ [type]: schema, [PROBLEM_TYPE]: named('Problem') }),
    },
  ]);
  return Object.fromEntries(described.filter(([status]) => replies[status as number] === undefined));
}

function contentOf(content: Readonly<Record<string, Schema>>) {
  return Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, { schema }]));
}

function headersOf(headers: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  );
}

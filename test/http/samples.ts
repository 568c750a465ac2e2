import type { Door } from '../../src/config/options/options.ts';
import type { OddRequests } from '../support/odd-requests.ts';
import type { TransportTwins } from '../support/transport-twins.ts';
import {
  batches,
  creates,
  deletes,
  graphql,
  mutations,
  rest,
  rowChanges,
  rowCreates,
  rowDeletes,
  rowPuts,
  rows,
  updates,
} from './door-requests.ts';
import {
  customEndpoint,
  dumps,
  everything,
  lastingReads,
  volatileReads,
  writes,
} from './management-requests.ts';
import { type SourceName, signed, sources, webhook } from './webhook-requests.ts';

/** Requests to a door. All samples together ask every route. */
export interface Sample {
  readonly what: string;
  readonly door: Door;
  readonly requests: OddRequests;
  /**
   * How many may share a connection; one where the order of what they do could differ, or whether it is done at all: a
   * request behind one whose reply closes the connection may have begun.
   */
  readonly maxLength: number;
  /** How the reply to the plain request begins; default with a 200. */
  readonly success?: RegExp;
  /** Whether the replies are about their moment. */
  readonly volatile?: boolean;
  /** Whether Fastify answers the plain request too. */
  readonly slow?: boolean;
  /** Whether the service has relations. */
  readonly hasRows?: boolean;
}

/** Relations of a configuration module: one of them has a key of two columns. */
export const RELATIONS = `relations: {
    authors: { columns: { name: { type: 'text', max: 20 } }, indexes: [['name']] },
    loans: {
      key: ['author_id', 'reader'],
      columns: { author: { type: 'reference', to: 'authors' }, reader: { type: 'text', max: 20 } },
    },
  },`;

/** How services are configured that are asked. */
export const env = {
  ...everything,
  GRAPHQL_MAX_USERS: '5',
  GRAPHQL_MAX_BODY_BYTES: '400',
  GRAPHQL_MAX_BATCH: '2',
  WEBHOOK_MAX_BODY_BYTES: '300',
  WEBHOOK_MAX_BYTES_IN_FLIGHT: '400',
  WEBHOOK_SECRET: 'sesame',
};

/** Their configuration module; `more` has further settings of the management door, `others` of all. */
export function configModule(more = '', others = ''): string {
  return `export default { ${others}
  management: { endpoints: [${customEndpoint}], ${more} },
  webhook: { sources: ${JSON.stringify(sources)} },
};`;
}

function post(target: string, body: string, lines = ''): string {
  return `POST ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines}Content-Length: ${body.length}\r\n\r\n${body}`;
}

/** Two users of REST, so that the last of those whose ids are asked for is unknown, a delivery, and perhaps rows. */
export async function addContents(twins: TransportTwins, hasRows = false): Promise<void> {
  if (hasRows) {
    for (const body of ['{"name":"N"}', '{"name":"P"}']) await twins.ask('rest', [post('/authors', body)]);
    await twins.ask('rest', [post('/loans', '{"author_id":1,"reader":"a"}')]);
  }
  for (let i = 0; i < 2; i++) await twins.ask('rest', [post('/users', '{"name":"N","email":"n@x.y"}')]);
  await twins.ask('webhook', [
    post(
      '/webhook',
      '{"event":"nobody.knows"}',
      'X-Webhook-Token: sesame\r\nContent-Type: application/json\r\n',
    ),
  ]);
}

const NO_CONTENT = /^HTTP\/1\.1 204 /;

/** The samples of the doors that keep something. */
export const doorSamples: readonly Sample[] = [
  { what: 'rest', door: 'rest', requests: rest, maxLength: 3 },
  { what: 'rest, creating', door: 'rest', requests: creates, maxLength: 1 },
  { what: 'rest, updating', door: 'rest', requests: updates, maxLength: 1 },
  { what: 'rest, deleting', door: 'rest', requests: deletes, maxLength: 1 },
  ...(
    [
      ['reading', rows, 3, 200],
      ['creating', rowCreates, 1, 201],
      ['changing', rowChanges, 1, 200],
      ['putting', rowPuts, 1, 200],
      ['deleting', rowDeletes, 1, 404],
      ['batches', batches, 1, 200],
    ] as const
  ).map(([what, requests, maxLength, status]): Sample => {
    const success = new RegExp(`^HTTP/1\\.1 ${status} `);
    return { what: `rest, rows, ${what}`, door: 'rest', requests, maxLength, success, hasRows: true };
  }),
  { what: 'graphql', door: 'graphql', requests: graphql, maxLength: 3 },
  { what: 'graphql, mutations', door: 'graphql', requests: mutations, maxLength: 1 },
  { what: 'webhook', door: 'webhook', requests: webhook, maxLength: 1 },
  ...(Object.keys(sources) as readonly SourceName[]).map(
    (name): Sample => ({
      what: `webhook, the signed source ${name}`,
      door: 'webhook',
      requests: signed(name),
      maxLength: 1,
    }),
  ),
];

/** Those of the management door. */
export const managementSamples: readonly Sample[] = [
  { what: 'management', door: 'management', requests: lastingReads, maxLength: 3 },
  {
    what: 'management, of the moment',
    door: 'management',
    requests: volatileReads,
    maxLength: 3,
    volatile: true,
  },
  {
    what: 'management, writing',
    door: 'management',
    requests: writes,
    maxLength: 2,
    success: NO_CONTENT,
    // Some of them read deliveries.
    volatile: true,
  },
  {
    what: 'management, dumps',
    door: 'management',
    requests: dumps,
    maxLength: 1,
    volatile: true,
    slow: true,
  },
];

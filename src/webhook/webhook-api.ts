import type { ErrorCode } from '../core/error-codes.ts';
import { type ApiOperation, type ApiParameter, type DoorApi, text } from '../http/openapi.ts';
import type { SourceSettings } from '../signatures/sources.ts';
import { ACKNOWLEDGED, TEXT_TYPE } from './options.ts';

const BODY = [
  'BODY_TOO_LARGE',
  'BUSY',
  'INVALID_UTF8',
  'MALFORMED_JSON',
  'PROTO_KEY',
  'TOO_DEEP',
  'TOO_SLOW',
  'STORE_UNAVAILABLE',
  'OUTCOME_UNKNOWN',
] as const satisfies readonly ErrorCode[];

const STORED: ApiOperation['replies'] = {
  200: {
    description:
      'The delivery is stored; its handlers run afterwards. A repeated one is acknowledged the same.',
    content: { [TEXT_TYPE]: { const: ACKNOWLEDGED } },
    headers: { 'x-delivery-id': 'The id of the stored delivery.' },
  },
};

/** A delivery as the contract has it (CONTRACT.md#webhook-body). Any other JSON is stored too, as unhandled. */
const DELIVERY = {
  description: 'Any JSON. An `event` that has a handler is handled with its `data`.',
  type: ['object', 'array', 'string', 'number', 'boolean', 'null'],
  properties: {
    event: { description: 'The kind of event.' },
    data: { description: 'What the handler gets.' },
  },
  examples: [{ event: 'new_commit', data: { sha: 'c0ffee' } }],
} as const;

/** What the description needs of the door. */
export interface WebhookApiOptions {
  /** Whether /webhook asks for a token. */
  readonly secured: boolean;
  readonly sources: readonly SourceSettings[];
}

/** The webhook door as OpenAPI describes it (CONTRACT.md#webhook-receipt), with its signed sources. */
export function webhookApi({ secured, sources }: WebhookApiOptions): DoorApi {
  return {
    door: 'webhook',
    about: 'Receives events, and acknowledges them once they are stored.',
    refusal: { type: TEXT_TYPE, schema: text('What was wrong.') },
    schemas: { Delivery: DELIVERY },
    ...(secured && {
      security: {
        schemes: { webhookToken: { type: 'apiKey', in: 'header', name: 'x-webhook-token' } },
        needs: (path) => (path === '/webhook' ? { webhookToken: [] } : undefined),
        refusals: ['WRONG_TOKEN'],
      },
    }),
    paths: {
      '/webhook': {
        post: {
          id: 'receiveDelivery',
          summary: 'Stores a delivery',
          parameters: [
            { in: 'header', name: 'idempotency-key', schema: text(), description: KEY },
            { in: 'header', name: 'webhook-id', schema: text(), description: `${KEY} Wins over the other.` },
          ],
          body: {
            required: true,
            content: { 'application/json': { $ref: '#/components/schemas/Delivery' } },
          },
          replies: STORED,
          refusals: secured ? BODY : [...BODY, 'CROSS_SITE'],
        },
      },
      ...Object.fromEntries(sources.map((source) => [`/webhook/${source.name}`, { post: receive(source) }])),
    },
  };
}

const KEY = 'The same for all attempts to send a delivery, which is then stored once.';

function receive(source: SourceSettings): ApiOperation {
  const { name, scheme } = source;
  return {
    id: `receive_${name.replace(/\W/g, '_')}`,
    summary: `Stores a signed delivery of ${name}`,
    description: `Signed by the scheme \`${scheme}\`. \`portico send --source ${name}\` sends one.`,
    parameters: signedHeaders(source),
    body: {
      required: true,
      content: { 'application/json': {}, 'application/x-www-form-urlencoded': {} },
    },
    replies: {
      200: {
        ...STORED[200],
        description: `${STORED[200]?.description} A challenge gets its answer.`,
        content: { [TEXT_TYPE]: text() },
      },
    },
    refusals: ['REFUSED', 'MALFORMED_FORM', ...BODY],
  };
}

/** The headers that a signature of the source is in. */
function signedHeaders({ signature, secrets }: SourceSettings): readonly ApiParameter[] {
  try {
    const headers = signature.signer(secrets)({ id: 'id', timestamp: 0, body: Buffer.alloc(0) });
    return Object.keys(headers).map((name) => ({
      in: 'header',
      name,
      description: 'Part of the signature.',
      schema: text(),
      required: true,
    }));
  } catch {
    // A public key signs nothing; some schemes sign headers that only the sender knows.
    return [];
  }
}

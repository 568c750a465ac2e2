import type { ErrorCode } from '../core/error-codes.ts';
import { type ApiOperation, type ApiParameter, type DoorApi, text } from '../http/openapi.ts';
import type { SourceSettings } from '../signatures/sources.ts';
import { ACKNOWLEDGED, TEXT_TYPE } from './receiver.ts';

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
      'The delivery is stored; its handlers run afterwards. A duplicate is acknowledged in the same way.',
    content: { [TEXT_TYPE]: { const: ACKNOWLEDGED } },
    headers: { 'x-delivery-id': 'The id of the stored delivery.' },
  },
};

/** A delivery of the contract (CONTRACT.md#webhook-body). Other JSON is stored too, but not handled. */
const DELIVERY = {
  description: 'Any JSON. An `event` that has a handler is handled with its `data`.',
  type: ['object', 'array', 'string', 'number', 'boolean', 'null'],
  properties: {
    event: { description: 'The kind of event.' },
    data: { description: 'The data passed to the handler.' },
  },
  examples: [{ event: 'new_commit', data: { sha: 'c0ffee' } }],
} as const;

/** The configuration that the description depends on. */
interface WebhookApiOptions {
  /** Whether /webhook requires a token. */
  readonly secured: boolean;
  readonly sources: readonly SourceSettings[];
}

/** The OpenAPI description of the webhook door and its signed sources (CONTRACT.md#webhook-receipt). */
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
            {
              in: 'header',
              name: 'webhook-id',
              schema: text(),
              description: `${KEY} Takes precedence over idempotency-key.`,
            },
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
        description: `${STORED[200]?.description} A challenge gets the answer that its sender expects.`,
        content: { [TEXT_TYPE]: text() },
      },
      ...(scheme === 'discord' && {
        204: { description: 'The delivery is stored, or was a ping.', headers: STORED[200]?.headers ?? {} },
      }),
    },
    refusals: ['REFUSED', 'MALFORMED_FORM', ...BODY],
  };
}

/** The headers that contain a signature of the source. */
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
    // A public key cannot sign, and some schemes sign headers that only the sender knows.
    return [];
  }
}

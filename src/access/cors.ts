import type { RequestContext } from '@portico/transport';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Configures which pages of other origins may use a door. */
export interface CorsOptions {
  /** Origins such as `https://app.example.com`; `*` allows every origin. */
  readonly origins: readonly string[];
  /** Whether browsers may send cookies and stored passwords; default false. */
  readonly credentials?: boolean | undefined;
  /** How long browsers may remember an answer to a preflight, in seconds; default 600. */
  readonly maxAge?: number | undefined;
}

const DEFAULT_MAX_AGE = 600;
/** Header fields that pages may read in addition to the CORS-safelisted ones. */
const EXPOSED =
  'x-request-id, x-error-code, x-total-count, etag, link, location, preference-applied, ratelimit, ratelimit-policy, retry-after, www-authenticate';

type Fields = Readonly<Record<string, string>>;

/**
 * Adds the header fields that let pages of other origins read replies (Fetch, "CORS protocol").
 * `addPreflights` answers preflights.
 */
export class CorsPolicy {
  readonly options: CorsOptions;
  readonly #byOrigin: ReadonlyMap<string, Fields>;
  /** Fields for an origin that is not listed, and for requests without an origin. */
  readonly #others: Fields;
  readonly #takesAll: boolean;

  constructor(options: CorsOptions) {
    const { origins, credentials = false } = options;
    this.options = options;
    this.#takesAll = origins.includes('*');
    const fields = (origin: string, more: Fields): Fields => ({
      ...more,
      'access-control-allow-origin': origin,
      ...(credentials ? { 'access-control-allow-credentials': 'true' } : {}),
      'access-control-expose-headers': EXPOSED,
    });
    const vary = { vary: 'origin' };
    this.#others = this.#takesAll ? fields('*', {}) : vary;
    this.#byOrigin = new Map(
      this.#takesAll ? [] : origins.map((origin) => [origin, fields(origin, vary)] as const),
    );
  }

  /** Whether pages of an origin may use the door. */
  allows(origin: string | undefined): boolean {
    return origin !== undefined && (this.#takesAll || this.#byOrigin.has(origin));
  }

  /** The fields of a reply to a request from an origin. */
  fieldsFor(origin: string | undefined): Fields {
    return (origin === undefined ? undefined : this.#byOrigin.get(origin)) ?? this.#others;
  }

  /** Adds the fields to the reply. */
  apply(ctx: Pick<RequestContext, 'headers' | 'addHeaders'>): void {
    ctx.addHeaders(this.fieldsFor(ctx.headers.origin));
  }
}

/** Creates the policy of some options; undefined if they list no origin. */
export function corsPolicy(options: CorsOptions | undefined): CorsPolicy | undefined {
  return options === undefined || options.origins.length === 0 ? undefined : new CorsPolicy(options);
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'];

/**
 * Answers preflights of a door in a separate scope: a hook in the door's scope would exclude its routes from
 * the fast path. `addOptions` adds the door's replies to OPTIONS requests that are not preflights.
 */
export function addPreflights(
  app: FastifyInstance,
  policy: CorsPolicy | undefined,
  addOptions: (scope: FastifyInstance) => void = () => {},
): void {
  if (policy === undefined) {
    addOptions(app);
    return;
  }
  const { origins, credentials = false, maxAge = DEFAULT_MAX_AGE } = policy.options;
  const shared = { origin: [...origins], credentials, maxAge, methods: METHODS, strictPreflight: false };
  app.register(async (scope) => {
    // Loaded only if CORS is configured.
    const { default: cors } = await import('@fastify/cors');
    await scope.register(cors, {
      delegator: async (request: FastifyRequest) => ({ ...shared, preflight: isPreflight(request) }),
    });
    addOptions(scope);
  });
}

function isPreflight({ headers }: FastifyRequest): boolean {
  return headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

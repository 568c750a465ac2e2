import type { RequestContext } from '@portico/transport';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Which pages of other origins may use a door. */
export interface CorsOptions {
  /** Origins such as `https://app.example.com`; `*` for every one. */
  readonly origins: readonly string[];
  /** Whether browsers may send cookies and passwords of their own along; default false. */
  readonly credentials?: boolean | undefined;
  /** How long browsers may remember an answer to a preflight, in seconds; default 600. */
  readonly maxAge?: number | undefined;
}

const DEFAULT_MAX_AGE = 600;
/** What pages may read beside the fields that they always may. */
const EXPOSED =
  'x-request-id, x-error-code, x-total-count, etag, link, location, preference-applied, ratelimit, ratelimit-policy, retry-after, www-authenticate';

type Fields = Readonly<Record<string, string>>;

/**
 * Writes the header fields by which browsers let pages of other origins read replies (Fetch, "CORS protocol"). Preflights
 * are answered by `addPreflights`.
 */
export class CorsPolicy {
  readonly options: CorsOptions;
  readonly #byOrigin: ReadonlyMap<string, Fields>;
  /** For an origin that is not among them, and for no origin. */
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

  /** Has the reply to a request carry them. */
  apply(ctx: Pick<RequestContext, 'headers' | 'addHeaders'>): void {
    ctx.addHeaders(this.fieldsFor(ctx.headers.origin));
  }
}

/** The policy of some options; undefined when no origin is among them. */
export function corsPolicy(options: CorsOptions | undefined): CorsPolicy | undefined {
  return options === undefined || options.origins.length === 0 ? undefined : new CorsPolicy(options);
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'];

/**
 * Answers preflights of a door, in a scope of their own: a hook in the scope of the door would keep the fast path from its
 * routes. `addOptions` adds the door's own replies to OPTIONS, which are those to no preflight.
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
    // Loaded only where it is used.
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

import { HttpProblem, type RequestContext } from '@portico/transport';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { defaultsOf } from '../config/options/options.ts';
import { hostNameOf } from '../core/addresses.ts';

export interface CorsOptions {
  /** Origins such as `https://app.example.com`; `*` allows every origin. */
  readonly origins: readonly string[];
  /** Whether browsers may send cookies and stored passwords; default false. */
  readonly credentials?: boolean | undefined;
  /** How long browsers may remember an answer to a preflight, in seconds; default 600. */
  readonly maxAge?: number | undefined;
}

const { maxAge: DEFAULT_MAX_AGE } = defaultsOf('rest.cors');
/** Header fields that pages may read in addition to the CORS-safelisted ones. */
const EXPOSED =
  'x-request-id, x-error-code, x-total-count, etag, link, location, preference-applied, ratelimit, ratelimit-policy, retry-after, www-authenticate';

type Fields = Readonly<Record<string, string>>;

/** Adds the fields that let pages of other origins read replies (Fetch, "CORS protocol"). */
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

  allows(origin: string | undefined): boolean {
    return origin !== undefined && (this.#takesAll || this.#byOrigin.has(origin));
  }

  /** The fields of a reply to a request from an origin. */
  fieldsFor(origin: string | undefined): Fields {
    return (origin === undefined ? undefined : this.#byOrigin.get(origin)) ?? this.#others;
  }

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
 * the fast path. `addOptions` adds the door's replies to OPTIONS requests that are not preflights; `more` are
 * the door's methods that others lack.
 */
export function addPreflights(
  app: FastifyInstance,
  policy: CorsPolicy | undefined,
  addOptions: (scope: FastifyInstance) => void = () => {},
  more: readonly string[] = [],
): void {
  if (policy === undefined) {
    addOptions(app);
    return;
  }
  const { origins, credentials = false, maxAge = DEFAULT_MAX_AGE } = policy.options;
  const methods = [...METHODS, ...more];
  const shared = { origin: [...origins], credentials, maxAge, methods, strictPreflight: false };
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

/** The parts of a request that show its origin. */
type SentRequest = Pick<RequestContext, 'headers' | 'host'>;

/** Types that pages may send without a preflight (Fetch, "CORS-safelisted request-header"). */
const FORM_TYPES: ReadonlySet<string> = new Set([
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
]);

/**
 * Refuses a write that a browser sends for a page of another site (403): any page could otherwise write to a
 * service on the visitor's machine with a plain form. Pages of origins that the door allows may write.
 */
export function refuseCrossSite(
  ctx: SentRequest & Pick<RequestContext, 'method'>,
  cors?: CorsPolicy | undefined,
): void {
  const { method } = ctx;
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return;
  refuseFromOtherSite('Writes', ctx, cors);
}

/**
 * Refuses a form of another site (403), and requests of its scripts that look like one. Other types need a
 * preflight in browsers, and programs can claim any origin.
 */
export function refuseCrossSiteForm(ctx: SentRequest & Pick<RequestContext, 'contentType'>): void {
  if (!isFromOtherSite(ctx)) return;
  const [type = ''] = ctx.contentType?.split(';', 1) ?? [];
  const name = type.trim().toLowerCase();
  if (name === '' || FORM_TYPES.has(name)) throw crossSite('Forms', ctx);
}

/**
 * Refuses a request of any method that a browser sends for a page of another site (403). Browsers let any
 * page open a WebSocket to any server, and keep a stream open that the page cannot read. `what` names the
 * request in the refusal.
 */
export function refuseFromOtherSite(what: string, request: SentRequest, cors?: CorsPolicy | undefined): void {
  if (!isFromOtherSite(request) || cors?.allows(request.headers.origin) === true) return;
  throw crossSite(what, request);
}

function crossSite(what: string, { headers }: SentRequest): HttpProblem {
  const seen = headers['sec-fetch-site'] === undefined ? ': Origin is not the host that was asked for' : '';
  return new HttpProblem(403, 'CROSS_SITE', `${what} from another site are refused${seen}`);
}

/** Whether a browser sends a request for a page of another site. Programs send no such fields. */
function isFromOtherSite(request: SentRequest): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site !== undefined) return site === 'cross-site';
  // Old browsers send no Sec-Fetch-Site, and no browser sends it to a plain `http:` address other than
  // localhost.
  return origin !== undefined && !isOwn(origin, request.host);
}

/** Whether an origin has the host name of the request; a port does not make another site. */
function isOwn(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  const name = /^https?:$/.test(page.protocol) ? hostNameOf(page.host) : undefined;
  return name !== undefined && name === hostNameOf(host);
}

import { HttpProblem, hostNameOf, type RequestContext } from '@portico/transport';
import type { CorsPolicy } from '../access/cors.ts';

/** The parts of a request that show its origin. */
type SentRequest = Pick<RequestContext, 'headers' | 'host'>;

/**
 * Media types that a page may send to any site without a preflight (Fetch, "CORS-safelisted request-header").
 */
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

/**
 * Whether a browser sends a request for a page of another site. Programs send neither Sec-Fetch-Site nor
 * Origin.
 */
function isFromOtherSite(request: SentRequest): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (site !== undefined) return site === 'cross-site';
  // Old browsers send no Sec-Fetch-Site, and no browser sends it to a plain `http:` address other than
  // localhost.
  return origin !== undefined && !isOwn(origin, request.host);
}

/**
 * Whether an origin has the same host name as the request, on any port: a port does not make another site.
 */
function isOwn(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  const name = /^https?:$/.test(page.protocol) ? hostNameOf(page.host) : undefined;
  return name !== undefined && name === hostNameOf(host);
}

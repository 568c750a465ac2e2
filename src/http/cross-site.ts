import type { CorsPolicy } from './access/cors.ts';
import type { Exchange } from './endpoint.ts';
import { HttpProblem } from './problem.ts';

/**
 * Refuses a write that a browser sends from another site (403): a page anywhere could otherwise write
 * to a service on the visitor's own machine with a plain form. Programs send no Sec-Fetch-Site. Pages of origins that the
 * door lets in are not other sites.
 */
export function refuseCrossSite(
  { method, headers }: Pick<Exchange, 'method' | 'headers'>,
  cors?: CorsPolicy | undefined,
): void {
  if (headers['sec-fetch-site'] !== 'cross-site') return;
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return;
  if (cors?.allows(headers.origin) === true) return;
  throw new HttpProblem(403, 'CROSS_SITE', 'Writes from another site are refused');
}

/**
 * Refuses a WebSocket that a page of another site opens (403): browsers let any page open one to any server. `host` is
 * the host name that the client asked for. Browsers that send no Sec-Fetch-Site name the page's origin.
 */
export function refuseCrossSiteSocket(
  { headers, host }: Pick<Exchange, 'headers'> & { readonly host: string },
  cors?: CorsPolicy | undefined,
): void {
  const { origin, 'sec-fetch-site': site } = headers;
  if (site === undefined ? isOwn(origin, host) : site !== 'cross-site') return;
  if (cors?.allows(origin) === true) return;
  throw new HttpProblem(403, 'CROSS_SITE', 'WebSockets of another site are refused');
}

/** Whether an origin has the host's name, on whatever port: ports make no other site. */
function isOwn(origin: string | undefined, host: string): boolean {
  if (origin === undefined) return true;
  return URL.canParse(origin) && new URL(origin).hostname === host.toLowerCase();
}

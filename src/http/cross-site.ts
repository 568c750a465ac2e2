import type { Exchange } from './endpoint.ts';
import { HttpProblem } from './problem.ts';

/**
 * Refuses a write that a browser sends from another site (403): a page anywhere could otherwise write
 * to a service on the visitor's own machine with a plain form. Programs send no Sec-Fetch-Site.
 */
export function refuseCrossSite({ method, headers }: Pick<Exchange, 'method' | 'headers'>): void {
  if (headers['sec-fetch-site'] !== 'cross-site') return;
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return;
  throw new HttpProblem(403, 'CROSS_SITE', 'Writes from another site are refused');
}

import type { onRequestHookHandler } from 'fastify';
import { HttpProblem } from './problem.ts';

/**
 * Refuses a write that a browser sends from another site (403): a page anywhere could otherwise write
 * to a service on the visitor's own machine with a plain form. Programs send no Sec-Fetch-Site.
 */
export const refuseCrossSiteWrites: onRequestHookHandler = (request, _reply, done) => {
  const crossSite = request.headers['sec-fetch-site'] === 'cross-site';
  const read = request.method === 'GET' || request.method === 'HEAD' || request.method === 'OPTIONS';
  if (crossSite && !read) done(new HttpProblem(403, 'CROSS_SITE', 'Writes from another site are refused'));
  else done();
};

/** A code of Fastify (FST_), of Node's HTTP parser (HPE_) or of Node (ERR_). */
export type FrameworkCode = `FST_${string}` | `HPE_${string}` | `ERR_${string}`;

/** The code if it is one of Fastify's or Node's; undefined for all else. */
export function frameworkCode(code: unknown): FrameworkCode | undefined {
  return typeof code === 'string' && /^(?:FST|HPE|ERR)_/.test(code) ? (code as FrameworkCode) : undefined;
}

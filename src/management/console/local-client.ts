import type { FastifyRequest } from 'fastify';
import { isLoopback } from '../../core/trusted-addresses.ts';

/**
 * Names of fields that proxies, tunnels and delivery networks add to a request. Those that say whose request it is differ
 * from one to the next, so a name counts by the words in it.
 */
const PROXY_FIELD = new RegExp(
  [
    // Forwarded, X-Forwarded-For, X-Original-Forwarded-For, and misspellings.
    'forward',
    '^via$|^(?:x-)?proxy|^cdn-|^surrogate-|^front-end-|^x-varnish',
    // CF-Connecting-IP, True-Client-IP, X-Real-IP, X-Cluster-Client-IP, X-Remote-Addr, X-Azure-SocketIP.
    '(?:client|connecting|real|remote|user|socket|source|originating|peer|external)-?(?:ip|addr(?:ess)?)$',
    // What a proxy has rewritten.
    '^x-(?:original|rewrite|url|script|scheme|ssl|host|server|client-(?:cert|verify))',
    // Marks of single products: Cloudflare, CloudFront and load balancers of AWS, Envoy, Azure, Google, Akamai, Fastly and others.
    '^(?:x-)?(?:cf|amzn?|envoy|azure|fd|arr|appengine|cloud|goog|gfe|akamai|edge|fastly|fly|vercel|incap|sucuri|heroku|request-start|queue-start|ngrok|tailscale)(?:-|$)',
  ].join('|'),
);

/** What a proxy that is trusted may have added for its client, who is then known by X-Forwarded-For. */
const EXPLAINED = /^(?:x-forwarded(?:-.*)?|x-real-ip|via)$/;

/**
 * Whether the client runs on this machine. Any sign of a proxy says that it need not, unless the proxy is trusted and all
 * addresses that it names are this machine's. `localOnly` says that nobody else can connect: who comes without an
 * address is local then.
 */
export function isLocalClient(
  { ip, ips, headers }: Pick<FastifyRequest, 'ip' | 'ips' | 'headers'>,
  localOnly = false,
): boolean {
  // A connection that is gone has no address either.
  const isLocal = (address: string | undefined) => (address ? isLoopback(address) : localOnly);
  if (!(ips ?? [ip]).every(isLocal)) return false;
  const signs = Object.keys(headers).filter((name) => PROXY_FIELD.test(name));
  if (signs.length === 0) return true;
  // Fastify follows X-Forwarded-For of trusted proxies alone.
  if (ips === undefined || ips.length < 2 || !signs.every((name) => EXPLAINED.test(name))) return false;
  const named = ['x-forwarded-for', 'x-real-ip'].flatMap((name) => String(headers[name] ?? []).split(','));
  return named.every((address) => address.trim() === '' || isLoopback(address.trim()));
}

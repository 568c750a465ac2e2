import { HttpProblem, OwnHosts, prefersHtml, type Reply, send } from '@portico/transport';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { type Access, accessLevels } from '../../config/options/access.ts';
import { isLoopback } from '../../core/addresses.ts';
import { type ExposureRules, exposure, principalOf, withoutWrites } from '../guard.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { FORBIDDEN, refuse } from '../management-errors.ts';
import { accessRules } from '../masking.ts';
import type { Operations, Routes } from '../operations.ts';
import type { ConsoleView } from './console-view.ts';

/** The endpoints that the console's pages show. */
const SHOWN: readonly string[] = [
  'health',
  'info',
  'metrics',
  'env',
  'loggers',
  'httpexchanges',
  'deliveries',
  'eventloop',
  'threaddump',
  'history',
  'logtail',
  'requests',
  'openapi',
  'docs',
];

/** The access to the console itself. */
export function consoleAccess({ access = {} }: Pick<ExposureRules, 'access'>): Access {
  return accessRules(access)('console', undefined);
}

/**
 * The endpoints from which the console takes its data. They need not be exposed, because the console has its
 * own guard; but exclusions and configured access levels apply here too.
 */
export function consoleEndpoints(
  endpoints: readonly ManagementEndpoint[],
  { exclude, access = {} }: ExposureRules,
): readonly ManagementEndpoint[] {
  const excluded = exposure(exclude, []);
  const own = consoleAccess({ access });
  const named = accessRules(access);
  return endpoints.flatMap((endpoint) => {
    if (!SHOWN.includes(endpoint.id) || excluded(endpoint.id)) return [];
    const level = lower(own, named(endpoint.id, undefined));
    if (level === 'none') return [];
    if (level === 'unrestricted') return [endpoint];
    return [{ ...endpoint, routes: (scope) => withoutWrites(endpoint.routes(scope)) }];
  });
}

/** Data of other doors, which the console hides if those doors ask for credentials and this one does not. */
const OTHERS: readonly string[] = ['users', 'deliveries', 'test-deliveries'];

/** Whether the console may not show this endpoint's data. */
export function isClosed(id: string, { closed }: Pick<ConsoleView, 'closed'>): boolean {
  return closed !== undefined && OTHERS.includes(id);
}

/** Routes that answer only why they are closed. */
export function closedRoutes(routes: Routes, why: string): Routes {
  const refuse = () => {
    throw new HttpProblem(403, 'CONSOLE_REFUSED', why);
  };
  const closed = ({ get, post, delete: remove }: Operations): Operations => ({
    get: get && refuse,
    post: post && refuse,
    delete: remove && refuse,
  });
  return Object.fromEntries(Object.entries(routes).map(([path, operations]) => [path, closed(operations)]));
}

function lower(a: Access, b: Access): Access {
  return accessLevels.indexOf(a) < accessLevels.indexOf(b) ? a : b;
}

/**
 * Sent with every action. No form can send it, and a page of another origin needs the door's permission,
 * which it never gets.
 */
const ACTION_HEADER = 'x-portico-console';

interface ConsoleGuardOptions extends Pick<ConsoleView, 'hosts' | 'role' | 'localOnly'> {
  /** Whether the management door asks for credentials. */
  readonly secured: boolean;
  /** The reply to a browser that may not see the console. */
  readonly refusal: (why: string) => Reply;
}

const problem = (message: string) => new HttpProblem(403, 'CONSOLE_REFUSED', message);

const REMOTE = problem(
  'The console is open only to this machine, or with credentials: set MANAGEMENT_USER and MANAGEMENT_PASSWORD',
);
const HOST = problem('The Host header does not name this door; HTTP_HOSTS adds names');
const ORIGIN = problem('An action must come from the console itself');
const HEADER = problem(`An action needs the header ${ACTION_HEADER}`);

/** The hook of everything below the console. The base path's hook runs before it and checks credentials. */
export function consoleGuard({
  secured,
  localOnly,
  hosts = [],
  role,
  refusal,
}: ConsoleGuardOptions): onRequestHookHandler {
  const ownHosts = new OwnHosts(hosts, 'all');

  function refusalOf(request: FastifyRequest): HttpProblem | undefined {
    if (!secured && !isLocalClient(request, localOnly)) return REMOTE;
    if (ownHosts.strangerOf(request) !== undefined) return HOST;
    if (request.method === 'GET' || request.method === 'HEAD' || request.method === 'OPTIONS') return;
    if (!isSameOrigin(request)) return ORIGIN;
    if (request.headers[ACTION_HEADER] === undefined) return HEADER;
    return mayAct(request, role) ? undefined : FORBIDDEN;
  }

  return (request, reply: FastifyReply, done) => {
    const found = refusalOf(request);
    if (found === undefined) return done();
    if (request.method === 'GET' && prefersHtml(request.headers.accept, ['application/json'])) {
      send(reply, refusal(found.message));
    } else refuse(found, request, reply);
  };
}

/** Whether the user of a request has the role for actions. */
export function mayAct(request: FastifyRequest, role: string | undefined): boolean {
  return role === undefined || principalOf(request)?.roles.includes(role) === true;
}

/** Browsers send the Origin of every write. Other programs do not, and have to send the header. */
function isSameOrigin({ headers, protocol, host }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  return (
    headers.origin === undefined || headers.origin.toLowerCase() === `${protocol}://${host}`.toLowerCase()
  );
}

/**
 * Names of fields that proxies, tunnels and delivery networks add to a request. The fields for the client's
 * address differ from product to product, so a name matches by the words in it.
 */
const PROXY_FIELD = new RegExp(
  [
    // Forwarded, X-Forwarded-For, X-Original-Forwarded-For, and misspellings.
    'forward',
    '^via$|^(?:x-)?proxy|^cdn-|^surrogate-|^front-end-|^x-varnish',
    // CF-Connecting-IP, True-Client-IP, X-Real-IP, X-Cluster-Client-IP, X-Remote-Addr, X-Azure-SocketIP.
    '(?:client|connecting|real|remote|user|socket|source|originating|peer|external)-?(?:ip|addr(?:ess)?)$',
    // Fields in which a proxy keeps what it has rewritten.
    '^x-(?:original|rewrite|url|script|scheme|ssl|host|server|client-(?:cert|verify))',
    // Fields of single products: Cloudflare, CloudFront and load balancers of AWS, Envoy, Azure, Google,
    // Akamai, Fastly and others.
    '^(?:x-)?(?:cf|amzn?|envoy|azure|fd|arr|appengine|cloud|goog|gfe|akamai|edge|fastly|fly|vercel|incap|sucuri|heroku|request-start|queue-start|ngrok|tailscale)(?:-|$)',
  ].join('|'),
);

/** Fields that a trusted proxy may add; X-Forwarded-For then identifies the client. */
const EXPLAINED = /^(?:x-forwarded(?:-.*)?|x-real-ip|via)$/;

/**
 * Whether the client runs on this machine. Any sign of a proxy means that it may not, unless the proxy is
 * trusted and all addresses that it names are of this machine. With `localOnly`, only local clients can
 * connect, so a client without an address is local.
 */
export function isLocalClient(
  { ip, ips, headers }: Pick<FastifyRequest, 'ip' | 'ips' | 'headers'>,
  localOnly = false,
): boolean {
  // A closed connection has no address either.
  const isLocal = (address: string | undefined) => (address ? isLoopback(address) : localOnly);
  if (!(ips ?? [ip]).every(isLocal)) return false;
  const signs = Object.keys(headers).filter((name) => PROXY_FIELD.test(name));
  if (signs.length === 0) return true;
  // Fastify follows X-Forwarded-For only from trusted proxies.
  if (ips === undefined || ips.length < 2 || !signs.every((name) => EXPLAINED.test(name))) return false;
  const named = ['x-forwarded-for', 'x-real-ip'].flatMap((name) => String(headers[name] ?? []).split(','));
  return named.every((address) => address.trim() === '' || isLoopback(address.trim()));
}

import type { IncomingHttpHeaders } from 'node:http';

/** What a proxy tells of the request as the client sent it. */
interface Forwarded {
  readonly scheme: string | undefined;
  /** With its port, if the client named one. */
  readonly host: string | undefined;
  readonly port: string | undefined;
}

const HOST = /^([\w.-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?$/i;
const SCHEME = /^https?$/i;
const PREFIX = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)*\/*$/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' };

/**
 * The origin of a request that came through a proxy, with the prefix that the proxy took away. Of several
 * proxies the first counts, whose client is the real one. Forwarded (RFC 7239) wins over X-Forwarded-Proto,
 * -Host and -Port; whatever is malformed is as good as not there, and `direct` stands in for it.
 */
export function forwardedOrigin(headers: IncomingHttpHeaders, direct: string): string {
  const { scheme, host, port } =
    headers.forwarded === undefined ? fromXForwarded(headers) : fromForwarded(headers.forwarded);
  const [directScheme = 'http', directHost = ''] = direct.split('://');
  const seenScheme = scheme ?? directScheme;
  const [, name = '', hostPort] = HOST.exec(host ?? directHost) ?? [];
  // The port of our own address is not the one that the client asked for, once a proxy names scheme or host.
  const ownPort = host !== undefined || scheme === undefined ? hostPort : undefined;
  const seenPort = port ?? ownPort;
  const shown =
    seenPort === undefined || seenPort === DEFAULT_PORTS[seenScheme] ? '' : `:${Number(seenPort)}`;
  return `${seenScheme}://${name}${shown}${prefixOf(headers)}`;
}

function fromXForwarded(headers: IncomingHttpHeaders): Forwarded {
  const port = first(headers['x-forwarded-port']);
  return {
    scheme: matching(SCHEME, first(headers['x-forwarded-proto']))?.toLowerCase(),
    host: hostOf(first(headers['x-forwarded-host'])),
    port: isPort(port) ? port : undefined,
  };
}

/** The first element of Forwarded: pairs like `proto=https;host="example.org:8443"`. */
function fromForwarded(header: string): Forwarded {
  const pairs = new Map<string, string>();
  const PAIR = /\s*([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*))\s*(;|,|$)/y;
  for (let match = PAIR.exec(header); match !== null; match = PAIR.exec(header)) {
    const [, name = '', quoted, token = '', end] = match;
    pairs.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? token);
    if (end !== ';') break;
  }
  return {
    scheme: matching(SCHEME, pairs.get('proto'))?.toLowerCase(),
    host: hostOf(pairs.get('host')),
    port: undefined,
  };
}

/** Every proxy may have taken a prefix away, the first one the outermost. */
function prefixOf(headers: IncomingHttpHeaders): string {
  const prefixes = members(headers['x-forwarded-prefix']);
  if (!prefixes.every((prefix) => PREFIX.test(prefix))) return '';
  return prefixes.map((prefix) => prefix.replace(/\/+$/, '')).join('');
}

function hostOf(host: string | undefined): string | undefined {
  const port = HOST.exec(host ?? '')?.[2];
  return port === undefined || isPort(port) ? matching(HOST, host) : undefined;
}

function isPort(text: string | undefined): boolean {
  return text !== undefined && /^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) < 65_536;
}

function matching(pattern: RegExp, text: string | undefined): string | undefined {
  return text !== undefined && pattern.test(text) ? text : undefined;
}

function first(header: string | readonly string[] | undefined): string | undefined {
  return members(header)[0];
}

function members(header: string | readonly string[] | undefined): readonly string[] {
  if (header === undefined) return [];
  return String(header)
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
}

import type { Registration } from './admin-peer.ts';

const V2 = 'application/vnd.spring-boot.actuator.v2+json';
const V3 = 'application/vnd.spring-boot.actuator.v3+json';

/** What a Spring Boot Admin server asks its applications with. */
export const ACCEPT = `${V3}, ${V2}, application/json`;

/** The endpoints that the server probes one by one where there is no index. */
const PROBED = [
  'env',
  'health',
  'httpexchanges',
  'info',
  'loggers',
  'mappings',
  'metrics',
  'threaddump',
  'flyway',
];

export interface Seen {
  readonly status: number;
  readonly type: string;
  readonly headers: Headers;
  readonly json: unknown;
}

/** Asks as the server does: with the credentials of the metadata, and its own Accept header. */
export async function ask({ metadata }: Registration, url: string, method = 'GET'): Promise<Seen> {
  const headers: Record<string, string> = { accept: ACCEPT };
  const { 'user.name': name, 'user.password': password } = metadata;
  if (name !== undefined && password !== undefined) {
    headers.authorization = `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
  }
  const response = await fetch(url, { method, headers });
  const text = await response.text();
  const type = response.headers.get('content-type') ?? '';
  return {
    status: response.status,
    type,
    headers: response.headers,
    json: type.endsWith('json') && text !== '' ? JSON.parse(text) : undefined,
  };
}

const isGood = ({ status }: Seen) => status >= 200 && status < 300;

/** Under any other type the server takes an answer for one of Spring Boot 1 and rewrites it. */
export const isModern = ({ type }: Seen) => type.startsWith(V2) || type.startsWith(V3);

/** The endpoints that the server finds, by its two strategies: the index, else each one with OPTIONS. */
export async function detect(registration: Registration): Promise<ReadonlyMap<string, string>> {
  return (await queryIndex(registration)) ?? probe(registration);
}

async function queryIndex(registration: Registration): Promise<ReadonlyMap<string, string> | undefined> {
  const { managementUrl, serviceUrl } = registration;
  if (managementUrl === serviceUrl) return undefined;
  const index = await ask(registration, managementUrl);
  if (!isGood(index) || !isModern(index)) return undefined;
  const { _links: links } = index.json as { _links: Record<string, { href: string; templated: boolean }> };
  const found = Object.entries(links).filter(([name, { templated }]) => name !== 'self' && !templated);
  return found.length === 0 ? undefined : new Map(found.map(([name, { href }]) => [name, href]));
}

async function probe(registration: Registration): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const id of PROBED) {
    const url = `${registration.managementUrl.replace(/\/$/, '')}/${id}`;
    if (isGood(await ask(registration, url, 'OPTIONS'))) found.set(id, url);
  }
  return found;
}

/** The status that the server shows. What has no proper body is judged by the status of the reply. */
export async function statusOf(registration: Registration): Promise<string> {
  const seen = await ask(registration, registration.healthUrl);
  const { status } = Object(seen.json) as { readonly status?: unknown };
  if (typeof status === 'string') return status;
  return isGood(seen) ? 'UP' : 'DOWN';
}

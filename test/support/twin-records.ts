import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Door } from '../../src/config/options/options.ts';
import type { TestService } from './service.ts';
import type { TransportTwins, TwinReplies } from './transport-twins.ts';

/** The header by which the records are read. */
export type Authorization = Readonly<Record<string, string>>;

interface Shown {
  readonly timestamp: string;
  readonly timeTaken: string;
  readonly request: { readonly uri: string };
  readonly response: { readonly headers: Record<string, readonly string[]> };
}

const MAX_READINGS = 8;
const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/;

interface Deliveries {
  readonly items: readonly Readonly<Record<string, unknown>>[];
}

type Read = (service: TestService) => Promise<unknown>;

/**
 * Reads something from both until they agree, since a reply is recorded a moment after the client has it; only a few
 * times, because each reading is recorded too.
 */
async function same(twins: TransportTwins, read: Read): Promise<unknown> {
  for (let readings = 0; ; readings++) {
    const [byFast, byFastify] = await Promise.all([read(twins.fast), read(twins.fastify)]);
    if (readings < MAX_READINGS && !isDeepStrictEqual(byFast, byFastify)) await sleep(5 * readings);
    else {
      assert.deepEqual(byFast, byFastify);
      return byFast;
    }
  }
}

async function show({ urls }: TestService, path: string, headers: Authorization): Promise<string> {
  const reply = await fetch(`${urls.management}/actuator${path}`, { headers });
  assert.equal(reply.status, 200, path);
  return reply.text();
}

/** What a path below the base path of the management door shows. */
export async function readJson(
  service: TestService,
  path: string,
  headers: Authorization = {},
): Promise<unknown> {
  return JSON.parse(await show(service, path, headers));
}

/** How many requests were counted, by door, route, method and status, and what became of them; the same of both. */
export async function sameCounts(twins: TransportTwins, headers: Authorization = {}): Promise<string> {
  const counted = await same(twins, async (service) =>
    (await show(service, '/prometheus', headers))
      .split('\n')
      .filter((line) =>
        /^(?:http_server_requests|(?:graphql|webhook)_\w+?)_(?:seconds_count|total)\{/.test(line),
      )
      // A scrape counts itself, when it is over.
      .filter((line) => !line.includes('uri="/actuator/prometheus"'))
      .sort(),
  );
  return (counted as readonly string[]).join('\n');
}

/** The last exchanges of both are recorded alike. */
export async function sameExchanges(
  twins: TransportTwins,
  { headers = {}, volatile = false }: { readonly headers?: Authorization; readonly volatile?: boolean } = {},
): Promise<void> {
  const own = [
    'x-request-id',
    'x-delivery-id',
    // Each twin has users of its own.
    'etag',
    'last-modified',
    ...(volatile ? ['content-length', 'content-disposition'] : []),
  ];
  await same(twins, async (service) => {
    const { exchanges } = (await readJson(service, '/httpexchanges', headers)) as {
      readonly exchanges: readonly Shown[];
    };
    return exchanges
      .filter(isAsked(service))
      .map(({ timestamp: _at, timeTaken: _taken, request, response }) => ({
        request: { ...request, uri: request.uri.replace(UUID, 'ID') },
        response: {
          ...response,
          headers: Object.entries(response.headers).filter(([name]) => !own.includes(name)),
        },
      }));
  });
}

/** Those that a test asks for, and not those by which it reads the records. */
function isAsked({ urls }: TestService): (exchange: Shown) => boolean {
  return ({ request }) => !request.uri.startsWith(urls.management ?? '');
}

/** Both have stored the same deliveries, in the same order. */
export async function sameDeliveries(twins: TransportTwins): Promise<void> {
  await same(twins, async (service) => {
    const { items } = (await readJson(service, '/deliveries?limit=1000')) as Deliveries;
    return items.map(({ id: _id, receivedAt: _at, ...delivery }) => delivery);
  });
}

/** The ids that both have given to their latest delivery. */
export async function latestDelivery(
  { fast, fastify }: TransportTwins,
  headers: Authorization = {},
): Promise<TwinReplies> {
  const idOf = async (service: TestService) => {
    const { items } = (await readJson(service, '/deliveries?limit=1', headers)) as Deliveries;
    return String(items[0]?.id);
  };
  return { fast: await idOf(fast), fastify: await idOf(fastify) };
}

/** The routes that the doors of a service list; `mappings` has to be exposed. */
export async function listedRoutes(
  service: TestService,
): Promise<readonly (readonly [Door, path: string])[]> {
  const { contexts } = (await readJson(service, '/mappings')) as {
    contexts: {
      portico: { mappings: { dispatcherServlets: Record<Door, readonly { predicate: string }[]> } };
    };
  };
  const doors = Object.entries(contexts.portico.mappings.dispatcherServlets);
  return doors.flatMap(([door, routes]) =>
    routes.map(({ predicate }) => [door as Door, /\[(.*)\]/.exec(predicate)?.[1] ?? ''] as const),
  );
}

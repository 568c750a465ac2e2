import { postgresDatabase, withoutPostgres } from '../../support/databases.ts';
import { startTestService, type TestService } from '../../support/service.ts';

/** A service whose REST door listens, on a database of its own. */
export interface RestDoor extends AsyncDisposable {
  readonly service: TestService;
  readonly url: string;
  send(method: string, path: string, options?: RequestOptions): Promise<RestReply>;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<RestReply>;
  /** Creates a user; resolves to its id. */
  create(name: string, email: string): Promise<number>;
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON unless it is a text. */
  readonly body?: unknown;
}

export interface RestReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The envelope. */
  readonly body: { readonly status: string; readonly data?: unknown; readonly message?: string };
  /** The addresses of the Link header, by relation. */
  readonly links: Readonly<Record<string, string>>;
}

type Open = (env?: Readonly<Record<string, string>>) => Promise<RestDoor>;

/** Opens a door on each engine. */
export const restDoors: Readonly<Record<string, Open>> = {
  sqlite: (env) => open({ ...env }, 'file'),
  ...(withoutPostgres === undefined
    ? { postgres: async (env) => open({ DATABASE_URL: await postgresDatabase(), ...env }) }
    : {}),
};

/** Opens a door on the database that `env` names, or on one in memory or a file. */
export async function open(
  env: Readonly<Record<string, string>>,
  database: 'memory' | 'file' = 'memory',
): Promise<RestDoor> {
  const service = await startTestService({ database, env: { INTERFACES: 'rest', ...env } });
  try {
    await service.listen();
  } catch (error) {
    await service[Symbol.asyncDispose]();
    throw error;
  }
  async function send(
    method: string,
    path: string,
    { headers, body }: RequestOptions = {},
  ): Promise<RestReply> {
    const init: RequestInit = { method, headers: { ...headers } };
    if (body !== undefined) init.body = typeof body === 'string' ? body : JSON.stringify(body);
    return read(await fetch(`${service.urls.rest}${path}`, init));
  }
  return {
    service,
    get url() {
      return service.urls.rest ?? '';
    },
    send,
    get: (path, headers = {}) => send('GET', path, { headers }),
    async create(name, email) {
      const { headers } = await send('POST', '/users', { body: { name, email } });
      return Number(headers.get('location')?.split('/').at(-1));
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

async function read(response: Response): Promise<RestReply> {
  const { status, headers } = response;
  const text = await response.text();
  const found = (headers.get('link') ?? '').matchAll(/<([^>]*)>; rel="(\w+)"/g);
  return {
    status,
    headers,
    text,
    get body() {
      return JSON.parse(text) as RestReply['body'];
    },
    links: Object.fromEntries([...found].map(([, address = '', rel = '']) => [rel, address])),
  };
}

/** The ids of the users in a reply. */
export function idsOf({ body }: RestReply): readonly number[] {
  return (body.data as readonly { readonly id: number }[]).map(({ id }) => id);
}

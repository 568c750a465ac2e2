import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
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
  const service = await startTestService({ database, env: { INTERFACES: 'rest', ...env }, listens: true });
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

/** A line of a report, or of an export. */
export type ReportLine = Readonly<Record<string, unknown>>;

/** The lines of NDJSON. */
export function linesOf(text: string): readonly ReportLine[] {
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new Error(`The last line does not end: ${text.slice(-100)}`);
  return lines.map((line) => JSON.parse(line) as ReportLine);
}

/** An import whose body is written bit by bit. */
export interface OpenImport {
  readonly request: ClientRequest;
  /** The reply, which may come before the body ends. */
  readonly reply: Promise<IncomingMessage>;
}

/** Begins an import, of users unless the path is another one. */
export function openImport(
  url: string,
  headers: Readonly<Record<string, string>>,
  path = '/users',
): OpenImport {
  const sent = request(`${url}${path}`, { method: 'POST', headers });
  const reply = once(sent, 'response').then(([response]) => response as IncomingMessage);
  reply.catch(() => {});
  sent.on('error', () => {});
  return { request: sent, reply };
}

/** Sends an import in chunks while its report is read; resolves to the report. */
export async function importTo(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string | Buffer,
  path?: string,
): Promise<string> {
  const { request: sent, reply } = openImport(url, headers, path);
  sent.end(body);
  let text = '';
  for await (const chunk of (await reply).setEncoding('utf8')) text += chunk;
  return text;
}

/** An event of a stream, or a block with fields and no data. */
export interface SentEvent {
  readonly event: string;
  readonly id: string;
  readonly data: string;
  readonly retry: string;
}

export interface OpenStream extends AsyncDisposable {
  readonly response: Response;
  /** The next block; undefined when the stream has ended. */
  next(): Promise<SentEvent | undefined>;
}

/** Follows the users of a REST door. */
export async function follow(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  query = '',
  path = '/users',
): Promise<OpenStream> {
  const leaving = new AbortController();
  const response = await fetch(`${url}${path}${query}`, {
    headers: { accept: 'text/event-stream', ...headers },
    signal: leaving.signal,
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    response,
    async next() {
      while (!text.includes('\n\n')) {
        const { value, done } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) return undefined;
        text += value;
      }
      const end = text.indexOf('\n\n');
      const lines = text.slice(0, end).split('\n');
      text = text.slice(end + 2);
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? '';
      return { event: field('event'), id: field('id'), data: field('data'), retry: field('retry') };
    },
    async [Symbol.asyncDispose]() {
      leaving.abort();
      await reader?.cancel().catch(() => {});
    },
  };
}

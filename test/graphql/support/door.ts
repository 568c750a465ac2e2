import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { type Setup, startTestService, type TestService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** A service whose GraphQL door listens. */
export interface GraphqlDoor extends AsyncDisposable {
  readonly service: TestService;
  /** The endpoint. */
  readonly url: string;
}

/** An answer as a client reads it. */
export interface Answer {
  readonly status: number;
  readonly type: string | null;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; a GraphQL result. */
  readonly body: {
    readonly data?: Readonly<Record<string, unknown>> | null;
    readonly errors?: readonly {
      readonly message: string;
      readonly path?: readonly unknown[];
      readonly extensions?: Readonly<Record<string, unknown>>;
    }[];
  };
}

/** Starts a service; of its doors only those of GraphQL and REST are open unless `env` says otherwise. */
export async function openDoor({ env, ...setup }: Setup = {}): Promise<GraphqlDoor> {
  const service = await startTestService({ ...setup, env: { INTERFACES: 'graphql', ...env }, listens: true });
  return {
    service,
    get url() {
      return `${service.urls.graphql}${env?.GRAPHQL_PATH ?? '/graphql'}`;
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

export interface Question {
  readonly query: string;
  readonly variables?: unknown;
  readonly operationName?: string | null;
}

/** Sends a question by POST. */
export async function ask(
  url: string,
  question: Question | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const body = JSON.stringify(typeof question === 'string' ? { query: question } : question);
  return read(
    await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body }),
  );
}

/** Reads a response whole. */
export async function read(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const text = await response.text();
  const type = headers.get('content-type');
  return {
    status,
    type,
    headers,
    text,
    get body() {
      return JSON.parse(text) as Answer['body'];
    },
  };
}

/** What a request that is refused must come back with. */
export interface ExpectedRefusal {
  readonly code: string;
  readonly message: RegExp;
  /** The status for clients of `application/json`; for those of the newer type it is 400. */
  readonly legacy: 200 | 400;
}

/** Sends a body by POST, or parameters by GET, as a client that wants one media type. */
export async function sendAs(
  url: string,
  accept: string,
  asked: { readonly body: unknown } | { readonly params: Readonly<Record<string, string>> },
): Promise<Answer> {
  if ('params' in asked) {
    return read(await fetch(`${url}?${new URLSearchParams(asked.params)}`, { headers: { accept } }));
  }
  const headers = { accept, 'content-type': 'application/json' };
  return read(await fetch(url, { method: 'POST', headers, body: JSON.stringify(asked.body) }));
}

/** Sends it for both media types, and fails unless each is refused as it should be. */
export async function assertRefused(
  url: string,
  asked: Parameters<typeof sendAs>[2],
  { code, message, legacy }: ExpectedRefusal,
): Promise<void> {
  for (const accept of ['application/json', 'application/graphql-response+json']) {
    const answer = await sendAs(url, accept, asked);
    const what = `${accept}: ${answer.text}`;
    assert.equal(answer.status, accept === 'application/json' ? legacy : 400, what);
    assert.equal(answer.headers.get('x-error-code'), code, what);
    const [error, ...others] = answer.body.errors ?? [];
    assert.deepEqual([error?.extensions?.code, others.length, 'data' in answer.body], [code, 0, false], what);
    assert.match(error?.message ?? '', message);
  }
}

export interface Sent {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** In pieces, each on its way before the next one is written. */
  readonly body?: readonly (string | Uint8Array)[];
}

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Sends exactly these headers and no others but Host and those of the framing, unlike fetch. */
export function send(url: string, { method = 'GET', headers = {}, body = [] }: Sent = {}): Promise<Received> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.setNoDelay(true);
    void (async () => {
      for (const piece of body) {
        sent.write(piece);
        await turn();
      }
      sent.end();
    })();
  });
}

const SUBSCRIPTION = JSON.stringify({ query: 'subscription { userCreated { id name } }' });

/** Opens a subscription over a connection of its own and resolves once the answer has begun. */
export async function rawSubscription(url: string, query = SUBSCRIPTION): Promise<Socket> {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  socket.write(
    `POST ${pathname} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(query)}\r\n\r\n${query}`,
  );
  await once(socket, 'data');
  return socket;
}

/** A file with trusted documents, and the setting that names it. */
export async function trustedFile(content: unknown) {
  const folder = await temporaryFolder();
  const file = join(folder.path, 'documents.json');
  await writeFile(file, JSON.stringify(content));
  return {
    env: { GRAPHQL_DOCUMENTS: file },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

import { type Setup, startTestService, type TestService } from '../../support/service.ts';

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
  const service = await startTestService({ ...setup, env: { INTERFACES: 'graphql', ...env } });
  try {
    await service.listen();
  } catch (error) {
    await service[Symbol.asyncDispose]();
    throw error;
  }
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

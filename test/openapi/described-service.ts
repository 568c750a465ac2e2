import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { startTestService, type TestService } from '../support/service.ts';

/** An operation as a document describes it. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, object>> }>>;
}

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

export const METHODS = ['get', 'post', 'put', 'delete'];

const MODULE = `export default {
  management: { endpoints: [
    { id: 'greeting', read: () => 'hello' },
    { id: 'thing', path: 'part?', query: ['a', 'b?'], read: ({ path, query }) => ({ path, query }),
      write: ({ body }) => body ?? undefined, delete: () => undefined },
  ] },
  webhook: { sources: {
    hub: { scheme: 'github', secrets: ['sesame'] },
    shop: { scheme: 'standard', secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] },
  } },
};`;

/** A service with everything exposed, and two users and a delivery in it. */
export async function startDescribed(env: Readonly<Record<string, string>> = {}): Promise<TestService> {
  const service = await startTestService({
    module: MODULE,
    env: { MANAGEMENT_INCLUDE: '*', WEBHOOK_MAX_BODY_BYTES: '2000', ...env },
  });
  await service.listen();
  const { rest, webhook } = service.urls;
  for (const name of ['Ada', 'Bob']) {
    await fetch(`${rest}/users`, { method: 'POST', body: JSON.stringify({ name, email: 'x@y' }) });
  }
  await fetch(`${webhook}/webhook`, { method: 'POST', body: '{"event":"other"}' });
  return service;
}

export async function documentOf(
  { urls }: TestService,
  path = 'openapi',
  init: RequestInit = {},
): Promise<ApiDocument> {
  const reply = await fetch(`${urls.management}/actuator/${path}`, init);
  assert.equal(reply.status, 200);
  return (await reply.json()) as ApiDocument;
}

export interface SeenReply {
  readonly status: number;
  readonly type: string | null;
  readonly text: string;
}

/** Makes what compares replies with a document. */
export function replyChecker(document: ApiDocument) {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'doc');
  const pointed = (part: string) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));

  return function check(path: string, method: string, { status, type, text }: SeenReply): void {
    const seen = `${method} ${path}: ${status} ${type} ${text.slice(0, 300)}`;
    const response = document.paths[path]?.[method]?.responses[status];
    assert.ok(response, `not described: ${seen}`);
    if (response.content === undefined) {
      assert.equal(text, '', seen);
      return;
    }
    assert.ok(type !== null && Object.hasOwn(response.content, type), `another type: ${seen}`);
    const parts = ['paths', path, method, 'responses', String(status), 'content', type, 'schema'];
    if (!Object.hasOwn(response.content[type] ?? {}, 'schema')) return;
    const validate = ajv.compile({ $ref: `doc#/${parts.map(pointed).join('/')}` });
    const value: unknown = /json/.test(type) ? JSON.parse(text) : text;
    assert.ok(validate(value), `${ajv.errorsText(validate.errors)}: ${seen}`);
  };
}

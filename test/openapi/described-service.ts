import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { startTestService, type TestService } from '../support/service.ts';

/** An operation as a document describes it. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, DescribedReply | { readonly $ref: string }>>;
}

interface DescribedReply {
  readonly description: string;
  readonly content?: Readonly<Record<string, object>>;
}

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, DescribedReply>> };
}

export const METHODS = ['get', 'post', 'put', 'delete'];

const MODULE = `  management: { endpoints: [
    { id: 'greeting', read: () => 'hello' },
    { id: 'thing', path: 'part?', query: ['a', 'b?'], read: ({ path, query }) => ({ path, query }),
      write: ({ body }) => body ?? undefined, delete: () => undefined },
  ] },
  webhook: { sending, sources: {
    hub: { scheme: 'github', secrets: ['sesame'] },
    shop: { scheme: 'standard', secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] },
  } },
};`;

/** A service with everything exposed, and two users and a delivery in it. */
export async function startDescribed(
  env: Readonly<Record<string, string>> = {},
  relations?: object,
  sending: boolean | object = false,
): Promise<TestService> {
  const declared = relations === undefined ? '' : `  relations: ${JSON.stringify(relations)},\n`;
  const service = await startTestService({
    module: `const sending = ${JSON.stringify(sending)};\nexport default {\n${declared}${MODULE}`,
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

interface SeenReply {
  readonly status: number;
  readonly type: string | null;
  /** The code of a refusal. */
  readonly code: string | null;
  readonly text: string;
}

/** What of a reply can be compared with a document. */
export async function seen(reply: Response): Promise<SeenReply> {
  const { status, headers } = reply;
  return {
    status,
    type: headers.get('content-type'),
    code: headers.get('x-error-code'),
    text: await reply.text(),
  };
}

/** Makes what compares replies with a document. */
export function replyChecker(document: ApiDocument) {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'doc');
  const pointed = (part: string) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));

  return function check(path: string, method: string, { status, type, code, text }: SeenReply): void {
    const reply = `${method} ${path}: ${status} ${code} ${type} ${text.slice(0, 300)}`;
    const given = document.paths[path]?.[method]?.responses[status];
    assert.ok(given, `not described: ${reply}`);
    const name = '$ref' in given ? (given.$ref.split('/').at(-1) ?? '') : undefined;
    const response = name === undefined ? (given as DescribedReply) : document.components.responses[name];
    assert.ok(response);
    assert.ok(code === null || response.description.includes(`\`${code}\``), `another code: ${reply}`);
    if (response.content === undefined) {
      assert.equal(text, '', reply);
      return;
    }
    assert.ok(type !== null && Object.hasOwn(response.content, type), `another type: ${reply}`);
    const place =
      name === undefined
        ? ['paths', path, method, 'responses', String(status)]
        : ['components', 'responses', name];
    const parts = [...place, 'content', type, 'schema'];
    if (!Object.hasOwn(response.content[type] ?? {}, 'schema')) return;
    const validate = ajv.compile({ $ref: `doc#/${parts.map(pointed).join('/')}` });
    const value: unknown = /[/+]json/.test(type) ? JSON.parse(text) : text;
    assert.ok(validate(value), `${ajv.errorsText(validate.errors)}: ${reply}`);
  };
}

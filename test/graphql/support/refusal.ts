import assert from 'node:assert/strict';
import { type Answer, read } from './door.ts';

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

import type { SecretResolver } from '../../src/config/secrets.ts';
import type { AnyScheme, Refusal, RequestHeaders } from '../../src/signatures/schemes.ts';
import { readSources } from '../../src/signatures/sources.ts';

const resolve: SecretResolver = {
  env: (name) => ({ HOOK_SECRET: 'from the variable', EMPTY: '' })[name],
  file: (at, path) => (path === '/run/hook' ? { text: 'from the file' } : { problem: `${at}: no ${path}` }),
};

/** Reads what stands in a configuration as `webhook.sources`. */
export function readConfigured(value: unknown) {
  const problems: string[] = [];
  // Through JSON: everything that is configured can stand in a file of data.
  const data = value === undefined ? undefined : JSON.parse(JSON.stringify(value));
  const read = readSources(data, 'webhook.sources', resolve, problems);
  return { sources: new Map(read.map((source) => [source.name, source])), problems };
}

export type Verdict = { readonly ok: true } | { readonly ok: false; readonly reason: Refusal };

/** Checks a whole request at once. `now` is in milliseconds since the epoch. */
export function verify(
  verifier: ReturnType<AnyScheme['verifier']>,
  headers: RequestHeaders,
  body: Uint8Array,
  now: number,
  request?: { readonly target: string; readonly contentType: string | null },
): Verdict {
  const step = verifier(headers, now, request);
  const reason = typeof step === 'function' ? step(body) : step;
  if (reason instanceof Promise) throw new TypeError('this scheme has to wait');
  return reason === undefined ? { ok: true } : { ok: false, reason };
}

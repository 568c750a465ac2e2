/** A request that a client has sent, and how it was answered. */
export interface Recorded {
  readonly method: string;
  /** The document's text was in it. */
  readonly hasText: boolean;
  readonly status: number;
  /** The code of a refusal. */
  readonly code: string | null;
}

/** The `fetch` of a client, which notes each request once it is answered. */
export function recordedFetch(): { readonly fetch: typeof fetch; readonly requests: Recorded[] } {
  const requests: Recorded[] = [];
  return {
    requests,
    async fetch(input, init) {
      const response = await fetch(input, init);
      const { status, headers } = response;
      const sent = `${input instanceof Request ? input.url : input} ${init?.body ?? ''}`;
      const hasText = /[?&]query=|"query":/.test(sent);
      requests.push({ method: init?.method ?? 'GET', hasText, status, code: headers.get('x-error-code') });
      return response;
    },
  };
}

/** What was sent, one line for each request: `POST text 200`, `GET name 400 PERSISTED_QUERY_NOT_FOUND`. */
export function linesOf(requests: readonly Recorded[]): readonly string[] {
  return requests.map(({ method, hasText, status, code }) =>
    [method, hasText ? 'text' : 'name', status, ...(code === null ? [] : [code])].join(' '),
  );
}

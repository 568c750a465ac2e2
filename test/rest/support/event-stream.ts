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
): Promise<OpenStream> {
  const leaving = new AbortController();
  const response = await fetch(`${url}/users${query}`, {
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

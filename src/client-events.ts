type Members = Readonly<Record<string, unknown>>;

/** A change of a row. */
export type ChangeEvent<N = string, Row = Members> = {
  /** With it `from` goes on behind this event. */
  readonly id: string;
  readonly position: number;
  readonly relation: N;
  /** The key as in a path. */
  readonly key: string;
} & (
  | { readonly type: 'created' | 'updated'; readonly row: Row }
  /** The row before its removal; undefined if only its caller cannot see it any more. */
  | { readonly type: 'deleted'; readonly row?: Row }
);

export interface FollowOptions<Where> {
  /** The id of an event, to go on behind it; without it the changes from now on. */
  readonly from?: string;
  readonly types?: readonly ChangeEvent['type'][];
  /** A condition on columns of the row. */
  readonly where?: Where;
  /** Ends the events. */
  readonly signal?: AbortSignal;
  /** Called once, when the stream is open, and waited for before its events: a copy of a list reads it now. */
  readonly onOpen?: () => unknown;
}

/** Time without a byte after which a connection is lost, in milliseconds; the service sends one every 12 s. */
const SILENCE = 40_000;

/** Longest time between two attempts to connect, in milliseconds. */
const MAX_WAIT = 30_000;

/** The events of a stream, over any number of connections. */
export async function* follow(
  open: (headers: Readonly<Record<string, string>>) => Promise<Response>,
  { from, types, signal, onOpen }: FollowOptions<unknown>,
): AsyncGenerator<ChangeEvent, undefined> {
  let last = from;
  let retry = 2_000;
  let failures = 0;
  let wasConnected = false;
  let isOpen = false;
  while (signal?.aborted !== true) {
    let wait = 0;
    const accept = { accept: 'text/event-stream, application/problem+json' };
    const headers = last === undefined ? accept : { ...accept, 'last-event-id': last };
    const response = await open(headers).catch((error: unknown) => {
      if (signal?.aborted === true) return undefined;
      const { status, retryAfter = 0 } = error as { readonly status?: number; readonly retryAfter?: number };
      const isRefusal = status !== undefined && status < 500 && status !== 429;
      if (!wasConnected || isRefusal) throw error;
      wait = Math.max(Math.min(MAX_WAIT, retry * 2 ** failures++), retryAfter * 1_000);
      return undefined;
    });
    if (response !== undefined) {
      wasConnected = true;
      failures = 0;
      for await (const event of eventsOf(response, signal)) {
        retry = event.retry ?? retry;
        last = event.id ?? last;
        // A stream begins with an id that has no data.
        if (event.id !== undefined && !isOpen) {
          isOpen = true;
          await onOpen?.();
        }
        // After "gone" the next connection is refused with the code.
        if (event.data === undefined || event.name === 'gone') continue;
        const change = changeOf(event, last ?? '', event.data);
        if (types === undefined || types.includes(change.type)) yield change;
      }
      wait = retry;
    }
    await pause(wait, signal);
  }
  return undefined;
}

function changeOf({ name = '' }: StreamEvent, id: string, data: string): ChangeEvent {
  const change = JSON.parse(data) as ChangeEvent;
  if (name.startsWith('user.') && !('relation' in change)) {
    // The stream of users has the user alone.
    const row: Members = change;
    const place = { position: Number.parseInt(id, 10), relation: 'users', key: String(row.id) };
    return { id, ...place, type: name.slice('user.'.length) as 'created', row };
  }
  return { ...change, id };
}

/** An event of a stream, with the fields that it has. */
interface StreamEvent {
  readonly id?: string;
  readonly name?: string;
  readonly data?: string;
  readonly retry?: number;
}

/** The events of one connection; they end when it does. */
async function* eventsOf({ body }: Response, signal: AbortSignal | undefined): AsyncGenerator<StreamEvent> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  const cancel = () => reader.cancel().catch(() => {});
  const lost = { value: undefined, done: true } as const;
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const timer = setTimeout(cancel, SILENCE);
      const { value, done } = await reader.read().catch(() => lost);
      clearTimeout(timer);
      if (done) return;
      const blocks = (text + decoder.decode(value, { stream: true })).replaceAll('\r\n', '\n').split('\n\n');
      // The last one may be incomplete.
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        if (signal?.aborted === true) return;
        yield eventOf(block);
      }
    }
  } finally {
    await cancel();
  }
}

function eventOf(block: string): StreamEvent {
  const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/s.exec(line) ?? []);
  const valuesOf = (name: string) =>
    fields.flatMap(([, each, value]) => (each === name ? [value ?? ''] : []));
  const data = valuesOf('data');
  const [id] = valuesOf('id');
  const [name] = valuesOf('event');
  const [retry] = valuesOf('retry');
  return {
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
    ...(data.length > 0 && { data: data.join('\n') }),
    ...(retry !== undefined && { retry: Number(retry) }),
  };
}

/** Resolves after a time in milliseconds, or when the signal aborts. */
function pause(time: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, time);
    signal?.addEventListener('abort', end);
    if (signal?.aborted === true) end();
  });
}

import { useEffect, useRef } from 'react';

/** A fault of a request, at the member that `pointer` names. */
export interface Fault {
  readonly detail: string;
  readonly pointer?: string;
}

/** The service answered with an error, or not at all (status 0). */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  /** The individual faults of a request, if the service lists them. */
  readonly faults: readonly Fault[];

  constructor(status: number, message: string, faults: readonly Fault[] = []) {
    super(message);
    this.status = status;
    this.faults = faults;
  }
}

/** Reads an endpoint. Throws ApiError. */
export function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  return ask<T>(path, signal === undefined ? {} : { signal });
}

/** Sends an action; no form on another page can send its header. Throws ApiError. */
export function act<T = void>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { 'x-portico-console': '1' };
  // keepalive: the request is sent even if the user leaves the page.
  if (body === undefined) return ask<T>(path, { method, headers, keepalive: true });
  headers['content-type'] = 'application/json';
  return ask<T>(path, { method, headers, body: JSON.stringify(body) });
}

let credentials: { readonly token: string; readonly onRefused: () => void } | undefined;

/** Sends a token with each request from now on; `onRefused` is called when the service no longer takes it. */
export function signIn(token: string, onRefused: () => void): void {
  credentials = { token, onRefused };
}

/** Sends a request, whatever its answer is. Throws ApiError if there is none. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const used = credentials;
  const headers = {
    accept: 'application/json',
    ...(used && { authorization: `Bearer ${used.token}` }),
    ...init.headers,
  };
  try {
    const response = await fetch(API + path, { cache: 'no-store', ...init, headers });
    noteAnswer(true);
    if (response.status === 401) used?.onRefused();
    return response;
  } catch (error) {
    if (init.signal?.aborted) throw error;
    noteAnswer(false);
    throw new ApiError(0, 'The service does not answer');
  }
}

async function ask<T>(path: string, init: RequestInit): Promise<T> {
  const response = await send(path, init);
  const text = await response.text();
  // An unhealthy service reports health with status 503 and the usual body.
  const isHealth = path.startsWith('health') && response.status === 503;
  if (!response.ok && !isHealth) throw errorOf(response, text);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

function errorOf({ status, statusText }: Response, text: string): ApiError {
  try {
    const { message, error, detail, errors = [] } = JSON.parse(text);
    return new ApiError(status, message ?? detail ?? error ?? statusText, errors);
  } catch {
    return new ApiError(status, statusText);
  }
}

/** The console's endpoints, relative to its page, so that they work behind a proxy's prefix. */
export const API = `${location.pathname.replace(/\/$/, '')}/api/`;

/** The state of the connection to the service. */
export type Connection = 'connecting' | 'live' | 'lost' | 'resting';

/** Called with the data of an event. */
type LiveHandlers = Readonly<Record<string, (data: never) => void>>;

/** Delay before reopening a stream that the browser has given up, in milliseconds. */
const RETRY = 2_000;

let connection: Connection = 'connecting';
let streams = 0;
const watchers = new Set<(connection: Connection) => void>();

function tell(next: Connection): void {
  connection = next;
  for (const watcher of watchers) watcher(next);
}

/** Records whether the service has answered a request; ignored while a stream is open, which knows better. */
function noteAnswer(isThere: boolean): void {
  if (streams === 0) tell(isThere ? 'live' : 'lost');
}

/** Calls a watcher with the connection now and at each change; returns a function that ends this. */
export function watchConnection(watcher: (connection: Connection) => void): () => void {
  watchers.add(watcher);
  watcher(connection);
  return () => watchers.delete(watcher);
}

/** Receives the events of topics (`a,b`) while the tab is visible, and resumes after an interruption. */
export function useLive(topics: string, handlers: LiveHandlers, after = ''): void {
  useStream(`live?topics=${topics}&after=`, handlers, after);
}

/**
 * Receives the events of a stream while the tab is visible, and resumes after an interruption. Its path ends with the
 * position after which it begins; undefined for no stream. `onGap` is called if it cannot be resumed and begins anew.
 */
export function useStream(
  path: string | undefined,
  handlers: LiveHandlers,
  after = '',
  onGap?: () => void,
): void {
  const current = useRef(handlers);
  current.current = handlers;
  const gap = useRef(onGap);
  gap.current = onGap;
  // The names never change while a page is open.
  const names = Object.keys(handlers).join();

  // biome-ignore lint/correctness/useExhaustiveDependencies: `after` is only the initial position.
  useEffect(() => {
    if (path === undefined) return;
    let source: EventSource | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let position = after;

    const close = () => {
      clearTimeout(timer);
      source?.close();
      source = undefined;
    };
    const open = () => {
      close();
      if (document.hidden) return tell('resting');
      tell(connection === 'lost' ? 'lost' : 'connecting');
      const opened = new EventSource(API + path + position);
      source = opened;
      opened.onopen = () => tell('live');
      opened.onerror = () => {
        tell('lost');
        if (opened.readyState !== EventSource.CLOSED) return;
        if (position !== '' && gap.current !== undefined) {
          position = '';
          gap.current();
        }
        timer = setTimeout(open, RETRY);
      };
      for (const name of names.split(',')) {
        opened.addEventListener(name, (event) => {
          const { data, lastEventId } = event as MessageEvent<string>;
          position = lastEventId;
          current.current[name]?.(JSON.parse(data) as never);
        });
      }
    };
    streams++;
    open();
    document.addEventListener('visibilitychange', open);
    return () => {
      document.removeEventListener('visibilitychange', open);
      streams--;
      close();
    };
  }, [path, names]);
}

import { useCallback, useEffect, useRef, useState } from 'react';
import { ApiError, read } from './api.ts';
import { goTo, linkTo, type Route } from './route.ts';

/** The last answer of an endpoint, and why there is none. */
export interface Data<T> {
  readonly value: T | undefined;
  readonly error: ApiError | undefined;
  /** Why the value, which is kept, could not be read anew. */
  readonly stale: ApiError | undefined;
  reload(): void;
}

/** Minimum time between two requests, in milliseconds. */
const MIN_INTERVAL = 2_000;
/** Timers may fire slightly early, in milliseconds. */
const TOLERANCE = 50;

/** Time after which a request that failed is repeated, in milliseconds. */
const RETRY = 3_000;

/** Whether the next request may succeed although nothing is changed: no answer, or a fault of the service. */
const mayPass = ({ status }: ApiError) => status === 0 || status === 429 || status >= 500;

/**
 * Reads an endpoint, repeatedly while the tab is visible. A failure keeps the last value, and is tried again until the
 * service answers.
 */
export function useData<T>(
  path: string | undefined,
  every?: number,
  readFrom: (path: string, signal: AbortSignal) => Promise<T> = read,
): Data<T> {
  const [state, setState] = useState<{ path?: string | undefined; value?: T; error?: ApiError }>({});
  const [round, setRound] = useState(0);
  const last = useRef(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round reads again, and the reader never changes.
  useEffect(() => {
    if (path === undefined) return;
    const abort = new AbortController();
    last.current = Date.now();
    readFrom(path, abort.signal).then(
      (value) => setState({ path, value }),
      (error) => {
        if (abort.signal.aborted) return;
        const known = error instanceof ApiError ? error : new ApiError(0, String(error));
        setState((before) => ({ ...(before.path === path && before), path, error: known }));
      },
    );
    return () => abort.abort();
  }, [path, round]);

  useEffect(() => {
    const again = () => {
      if (!document.hidden && Date.now() - last.current >= MIN_INTERVAL - TOLERANCE) setRound((n) => n + 1);
    };
    document.addEventListener('visibilitychange', again);
    const timer = every === undefined ? undefined : setInterval(again, Math.max(every, MIN_INTERVAL));
    return () => {
      document.removeEventListener('visibilitychange', again);
      clearInterval(timer);
    };
  }, [every]);

  const failed = state.path === path && state.error !== undefined && mayPass(state.error);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each failure is tried again.
  useEffect(() => {
    if (!failed) return;
    const timer = setInterval(() => {
      if (!document.hidden) setRound((n) => n + 1);
    }, RETRY);
    return () => clearInterval(timer);
  }, [failed, state.error]);

  const reload = useCallback(() => setRound((n) => n + 1), []);
  const { value, error } = state.path === path ? state : {};
  const isKept = value !== undefined && error !== undefined && mayPass(error);
  return { value, error: isKept ? undefined : error, stale: isKept ? error : undefined, reload };
}

/** A page of a list, with the filters and the position that the URL keeps, so that a view can be shared. */
interface Paged<T> extends Data<T> {
  /** The parameters of the URL but the position. */
  readonly filters: Readonly<Record<string, string>>;
  readonly isFirst: boolean;
  /** Shows the first page with other filters. */
  apply(filters: Readonly<Record<string, string>>): void;
  /** Shows the page at a position; by default the first one. */
  turnTo(position?: string): void;
}

/** Reads a page of a list. `position` is the parameter of the URL and of the endpoint that says which page. */
export function usePaged<T>(
  { page, item, query }: Route,
  position: string,
  pathOf: (query: URLSearchParams) => string,
  every?: number,
): Paged<T> {
  const data = useData<T>(pathOf(query), every);
  const { [position]: at, ...filters } = Object.fromEntries(query);
  return {
    ...data,
    filters,
    isFirst: at === undefined,
    apply: (changed) => goTo(linkTo(page, item, changed), true),
    turnTo: (next) => goTo(linkTo(page, item, { ...filters, [position]: next })),
  };
}

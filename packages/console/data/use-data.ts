import { useCallback, useEffect, useRef, useState } from 'react';
import { ApiError, read } from './api.ts';
import { goTo, linkTo, type Route } from './route.ts';

/** The last answer of an endpoint, and the error of the last request if it failed. */
export interface Data<T> {
  readonly value: T | undefined;
  readonly error: ApiError | undefined;
  reload(): void;
}

/** Minimum time between two requests, in milliseconds. */
const MIN_INTERVAL = 2_000;
/** Timers may fire slightly early, in milliseconds. */
const TOLERANCE = 50;

/** Reads an endpoint, repeatedly while the tab is visible. A failure keeps the last value. */
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

  const reload = useCallback(() => setRound((n) => n + 1), []);
  const current = state.path === path ? state : {};
  return { value: current.value, error: current.error, reload };
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
  { page, query }: Route,
  position: string,
  pathOf: (query: URLSearchParams) => string,
): Paged<T> {
  const data = useData<T>(pathOf(query));
  const { [position]: at, ...filters } = Object.fromEntries(query);
  return {
    ...data,
    filters,
    isFirst: at === undefined,
    apply: (changed) => goTo(linkTo(page, '', changed), true),
    turnTo: (next) => goTo(linkTo(page, '', { ...filters, [position]: next })),
  };
}

import { useCallback, useEffect, useRef, useState } from 'react';
import { ApiError, read } from './api.ts';

/** What an endpoint gave last, and why it gives nothing now. */
export interface Data<T> {
  readonly value: T | undefined;
  readonly error: ApiError | undefined;
  reload(): void;
}

/** Nothing is asked for more often, in milliseconds. */
const MIN_INTERVAL = 2_000;
/** A timer may be a little early. */
const TOLERANCE = 50;

/**
 * Reads an endpoint, again every so often while the tab is seen. What it gave last stays while it does not answer. An
 * undefined path reads nothing.
 */
export function useData<T>(path: string | undefined, every?: number): Data<T> {
  const [state, setState] = useState<{ path?: string | undefined; value?: T; error?: ApiError }>({});
  const [round, setRound] = useState(0);
  const last = useRef(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round reads again.
  useEffect(() => {
    if (path === undefined) return;
    const abort = new AbortController();
    last.current = Date.now();
    read<T>(path, abort.signal).then(
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

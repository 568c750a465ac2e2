import type { HandlerSpec } from '../../config/schema/module-handlers.ts';

/** Maximum threads of a handler that sets no concurrency: each takes the memory of an engine of its own. */
const MAX_THREADS = 4;

export interface IsolationDefaults {
  /** Whether handlers are isolated that do not say so themselves. */
  readonly isolate: boolean;
  readonly concurrency: number;
}

/** Handlers with what isolation makes of them: each says whether it is isolated, and how many threads it has then. */
export function withIsolation(
  handlers: ReadonlyMap<string, HandlerSpec>,
  defaults: IsolationDefaults,
): ReadonlyMap<string, HandlerSpec> {
  return new Map<string, HandlerSpec>(
    Array.from(handlers, ([event, spec]) => {
      if (!(spec.isolate ?? defaults.isolate)) return [event, { ...spec, isolate: false }] as const;
      const concurrency = spec.concurrency ?? Math.min(defaults.concurrency, MAX_THREADS);
      return [event, { ...spec, isolate: true, concurrency }] as const;
    }),
  );
}

/** The problems of isolated handlers that no configuration module has: a thread could not import them. */
export function isolationProblems(
  handlers: ReadonlyMap<string, HandlerSpec>,
  path: string,
): readonly string[] {
  const isolated = Array.from(handlers).filter(([, { isolate }]) => isolate === true);
  return isolated.map(
    ([event]) =>
      `${path}.${event} cannot be isolated: a worker thread imports its handlers from a configuration module (portico.config.ts or .js), and a function that is given in code cannot be sent to it; leave "isolate" out, or run the service with such a module`,
  );
}

/** Aborts its signal on the first Ctrl+C or SIGTERM; the second ends the process at once. */
export interface Interruption extends Disposable {
  readonly signal: AbortSignal;
}

/** The exit code of an interrupted command, as shells have it for SIGINT. */
export const INTERRUPTED = 130;

/** Milliseconds in which a further signal is ignored: some wrappers signal a process and then its group. */
const ECHO = 1_000;

/** From now on Ctrl+C and SIGTERM abort the signal instead of ending the process. */
export function interruption(): Interruption {
  const controller = new AbortController();
  let first: number | undefined;
  const onSignal = () => {
    first ??= performance.now();
    if (performance.now() - first > ECHO) process.exit(INTERRUPTED);
    controller.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      // After the first signal an echo of it must not end the process before its report is out.
      if (first !== undefined) return;
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    },
  };
}

/** The exit code of an interrupted command, as shells have it for SIGINT. */
export const INTERRUPTED = 130;

/** Milliseconds in which a further signal is ignored: some wrappers signal a process and then its group. */
const ECHO = 1_000;

/**
 * A signal that the first Ctrl+C or SIGTERM aborts instead of ending the process, until it is disposed of; the second
 * ends the process at once.
 */
export function interruption(): AbortSignal & Disposable {
  const controller = new AbortController();
  let first: number | undefined;
  const onSignal = () => {
    first ??= performance.now();
    if (performance.now() - first > ECHO) process.exit(INTERRUPTED);
    controller.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return Object.assign(controller.signal, {
    [Symbol.dispose]() {
      // After the first signal an echo of it must not end the process before its report is out.
      if (first !== undefined) return;
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    },
  });
}

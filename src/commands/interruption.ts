/** Tells when the user wants a command to end; a second signal ends it at once. */
export interface Interruption extends Disposable {
  readonly signal: AbortSignal;
}

/** The exit code of a command that was interrupted before its end, as shells have it for SIGINT. */
export const INTERRUPTED = 130;

/** From now on Ctrl+C and SIGTERM abort the signal instead of ending the process. */
export function interruption(): Interruption {
  const controller = new AbortController();
  const onSignal = () => {
    if (controller.signal.aborted) process.exit(INTERRUPTED);
    controller.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    },
  };
}

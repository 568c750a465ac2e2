import type { DestinationStream } from 'pino';

/** What is gathered is written at once when it gets longer than this, in characters. */
const MAX_GATHERED = 64 * 1024;

/** A destination that gathers; its owner flushes it at the end. */
export interface GatheringStream extends DestinationStream {
  /** Writes what is gathered now. */
  flushSync(): void;
}

/**
 * Gathers what is written in one tick of the event loop and passes it on at its end: under load a system call
 * per entry costs more than the entry.
 */
export function gatherWrites(destination: DestinationStream): GatheringStream {
  let gathered = '';
  let scheduled = false;
  const flush = () => {
    scheduled = false;
    const text = gathered;
    gathered = '';
    if (text !== '') destination.write(text);
  };
  return {
    write(text) {
      gathered += text;
      if (gathered.length > MAX_GATHERED) flush();
      else if (!scheduled) {
        scheduled = true;
        setImmediate(flush);
      }
    },
    flushSync: flush,
  };
}

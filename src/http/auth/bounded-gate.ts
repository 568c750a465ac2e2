/** All places are taken, those to wait too. */
export class GateFullError extends Error {
  override readonly name = 'GateFullError';
  readonly code = 'GATE_FULL';
}

/** Runs some tasks at once and queues the others. */
export interface Gate {
  /** Rejects with GateFullError, without running the task, when the queue is full. */
  run<T>(task: () => Promise<T>): Promise<T>;
}

/** A gate that lets `atOnce` tasks run while at most `waiting` others wait. */
export function boundedGate(atOnce: number, waiting: number): Gate {
  const queue: (() => void)[] = [];
  let running = 0;

  return {
    async run(task) {
      if (running < atOnce) running++;
      else if (queue.length >= waiting) throw new GateFullError('Too many wait already');
      // A task that ends hands its place to the next one, so that no other can take it in between.
      else await new Promise<void>((resolve) => queue.push(resolve));
      try {
        return await task();
      } finally {
        const next = queue.shift();
        if (next === undefined) running--;
        else next();
      }
    },
  };
}

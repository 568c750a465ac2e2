/**
 * Makes what lets `atOnce` tasks run while at most `waiting` others wait. It rejects with `full`, without running the task,
 * when the queue is full.
 */
export function boundedGate(atOnce: number, waiting: number, full: Error) {
  const queue: (() => void)[] = [];
  let running = 0;

  return async <T>(task: () => Promise<T>): Promise<T> => {
    if (running < atOnce) running++;
    else if (queue.length >= waiting) throw full;
    // A task that ends hands its place to the next one, so that no other can take it in between.
    else await new Promise<void>((resolve) => queue.push(resolve));
    try {
      return await task();
    } finally {
      const next = queue.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}

/** Time enough for all gauges of one scrape, in milliseconds. */
const ONE_SCRAPE = 50;

/** Reads something anew only when the last reading is older than `maxAge` milliseconds: several gauges show parts of it. */
export function sharedReading<T>(read: () => T, maxAge = ONE_SCRAPE): () => T {
  let last: { readonly value: T; readonly at: number } | undefined;
  return () => {
    const now = performance.now();
    if (last === undefined || now - last.at > maxAge) last = { value: read(), at: now };
    return last.value;
  };
}

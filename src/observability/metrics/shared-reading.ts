/** Longer than a scrape reads gauges, in milliseconds. */
const ONE_SCRAPE = 50;

/** Caches a reading for `maxAge` milliseconds, for several gauges that show parts of it. */
export function sharedReading<T>(read: () => T, maxAge = ONE_SCRAPE): () => T {
  let last: { readonly value: T; readonly at: number } | undefined;
  return () => {
    const now = performance.now();
    if (last === undefined || now - last.at > maxAge) last = { value: read(), at: now };
    return last.value;
  };
}

/** A pino timestamp in ISO 8601, made once per millisecond: under load many entries share one. */
export function isoTimestamp(now: () => number = Date.now): () => string {
  let madeAt: number | undefined;
  let made = '';
  return () => {
    const at = now();
    if (at !== madeAt) {
      madeAt = at;
      made = `,"time":"${new Date(at).toISOString()}"`;
    }
    return made;
  };
}

/** The clock is slowed down, not stepped, while it is ahead of the wall clock by less than this, in milliseconds. */
const SLEW = 1_000;

/**
 * A clock that never goes back, in milliseconds since the epoch. It follows the wall clock forwards; when that is set
 * back, it goes on as if nothing had happened, so that no lease and no due time moves away.
 */
export function steadyClock(wall = () => Date.now(), steady = () => performance.now()): () => number {
  let last = wall();
  let readAt = steady();
  return () => {
    const [wallNow, steadyNow] = [wall(), steady()];
    const expected = last + (steadyNow - readAt);
    readAt = steadyNow;
    last = expected - wallNow > SLEW ? expected : Math.max(last, wallNow);
    return Math.floor(last);
  };
}

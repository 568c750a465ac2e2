import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Asks `probe` again and again until it gives something other than undefined or false, and returns that.
 * Fails with `what` in the message once `within` milliseconds have gone (default 60,000).
 * An error of the probe ends the wait at once.
 */
export async function waitFor<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  within = 60_000,
): Promise<T> {
  const deadline = performance.now() + within;
  for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`waited ${within} ms in vain for ${what}`);
    await sleep(pause);
  }
}

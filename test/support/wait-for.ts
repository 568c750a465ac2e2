import timers from 'node:timers/promises';

/**
 * Asks `probe` again and again until it gives something other than undefined or false, and returns that.
 * Fails with `what` in the message after pauses of `within` milliseconds altogether (default 60,000): on a busy machine
 * each of them takes longer, and so does what is waited for. An error of the probe ends the wait at once.
 */
export async function waitFor<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  within = 60_000,
): Promise<T> {
  let paused = 0;
  for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (paused > within) throw new Error(`waited ${within} ms in vain for ${what}`);
    await timers.setTimeout(pause);
    paused += pause;
  }
}

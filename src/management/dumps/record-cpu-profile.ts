import { setTimeout as delay } from 'node:timers/promises';

/** Profiles the main thread for some milliseconds, or until `signal` is aborted; resolves to the profile as JSON. */
export async function recordCpuProfile(milliseconds: number, signal: AbortSignal): Promise<string> {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    // A profile that ends early is valid.
    await delay(milliseconds, undefined, { signal }).catch(() => {});
    const { profile } = await session.post('Profiler.stop');
    return JSON.stringify(profile);
  } finally {
    session.disconnect();
  }
}

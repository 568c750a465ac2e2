import { availableParallelism, userInfo } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { formatDuration } from '../iso-duration.ts';

/** Java's value of an unknown size. */
const UNDEFINED = -1;

/** This process in Actuator's shape, with V8's heap. Returns a function that describes its current state. */
export function processInfo() {
  const { timeZone, locale } = Intl.DateTimeFormat().resolvedOptions();
  const always = {
    pid: process.pid,
    owner: owner(),
    startTime: new Date(performance.timeOrigin).toISOString(),
    timezone: timeZone,
    locale,
    workingDirectory: process.cwd(),
  };
  return () => ({
    ...always,
    parentPid: process.ppid,
    currentTime: new Date().toISOString(),
    uptime: formatDuration(performance.now()),
    cpus: availableParallelism(),
    memory: memory(),
  });
}

function owner(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    // In a container the user often has no name.
    return process.getuid?.()?.toString();
  }
}

function memory() {
  const { rss, external } = process.memoryUsage();
  const { used_heap_size, total_heap_size, heap_size_limit, malloced_memory } = getHeapStatistics();
  const beside = external + malloced_memory;
  return {
    heap: { init: UNDEFINED, used: used_heap_size, committed: total_heap_size, max: heap_size_limit },
    nonHeap: {
      init: UNDEFINED,
      used: beside,
      committed: Math.max(beside, rss - total_heap_size),
      max: UNDEFINED,
    },
  };
}

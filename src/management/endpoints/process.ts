import { arch, availableParallelism, release, type, userInfo } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import type { MaybePromise } from '../../core/maybe-promise.ts';
import { formatDuration } from './recent.ts';

/** The commit that a program was built from, as Actuator shows it. */
export interface GitInfo {
  /** Absent when no branch is checked out. */
  readonly branch?: string;
  readonly commit: {
    /** The first seven digits. */
    readonly id: string;
    /** When it was committed, in ISO 8601. */
    readonly time?: string;
  };
}

/** The commit, or a function that finds it; undefined when there is none. */
export type GitSource = GitInfo | (() => MaybePromise<GitInfo | undefined>);

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

/** The operating system, in Actuator's shape. */
export function osInfo() {
  return { name: type(), version: release(), arch: arch() };
}

/** The runtime, in the shape of Actuator's `java`. */
export function nodeInfo() {
  const { v8, uv, openssl, modules } = process.versions;
  const { name, lts } = process.release;
  return {
    version: process.versions.node,
    lts,
    v8,
    uv,
    openssl,
    modules,
    runtime: { name, path: process.execPath },
  };
}

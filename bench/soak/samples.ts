import type { Window } from './recorder.ts';
import { type Point, slopePerHour } from './slope.ts';

/** The resource use of a process at one moment. */
export interface Usage {
  /** The name of the process; a restarted process has a new name. */
  readonly process: string;
  readonly memoryMiB: number;
  readonly descriptors: number;
}

/** A sample of all measurements, with its time since the start in seconds. */
export interface Sample extends Window {
  readonly at: number;
  readonly usages: readonly Usage[];
}

/** Share of a process's life in which it starts, loads code and fills caches. */
const WARM_UP = 0.2;

/** The memory of the longest-lived process after its warm-up. */
export interface MemoryTrend {
  readonly process: string;
  readonly seconds: number;
  readonly firstMiB: number;
  readonly lastMiB: number;
  readonly perHourMiB: number;
}

/** The values of each process over time. */
export function byProcess(
  samples: readonly Sample[],
  value: (usage: Usage) => number,
): ReadonlyMap<string, readonly Point[]> {
  const found = new Map<string, Point[]>();
  for (const { at, usages } of samples) {
    for (const usage of usages) {
      const points = found.get(usage.process) ?? [];
      found.set(usage.process, points);
      points.push({ at, value: value(usage) });
    }
  }
  return found;
}

/** The trend of memory; undefined without two samples of one process. */
export function memoryTrend(samples: readonly Sample[]): MemoryTrend | undefined {
  const all = [...byProcess(samples, ({ memoryMiB }) => memoryMiB)];
  const [longest] = all.toSorted(([, a], [, b]) => b.length - a.length);
  if (longest === undefined) return undefined;
  const [process, points] = longest;
  const warm = points.slice(Math.floor(points.length * WARM_UP));
  const [first, last] = [warm[0], warm.at(-1)];
  if (first === undefined || last === undefined || first === last) return undefined;
  return {
    process,
    seconds: last.at - first.at,
    firstMiB: first.value,
    lastMiB: last.value,
    perHourMiB: slopePerHour(warm),
  };
}

/** Condenses samples into `parts` of equal time, with their median p50 and worst p99. */
export function inParts(samples: readonly Sample[], parts: number): readonly (readonly Sample[])[] {
  const end = samples.at(-1)?.at ?? 0;
  const groups = Map.groupBy(samples, ({ at }) => Math.min(parts - 1, Math.floor((at / end) * parts)));
  return Array.from({ length: parts }, (_, part) => groups.get(part) ?? []);
}

import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import type { Metrics } from '../metrics/metrics.ts';
import { sharedReading } from '../metrics/shared-reading.ts';

/** Adds the meters of V8's heap and its spaces, and the Node version, under the names of Node dashboards. */
export function addHeapMetrics(metrics: Metrics): void {
  const bytes = (name: string, description: string, read: () => number) =>
    metrics.gauge(name, { unit: 'bytes', description }, read);
  const heap = sharedReading(() => getHeapStatistics());
  bytes('nodejs.heap.size.total', 'Size of the JavaScript heap', () => heap().total_heap_size);
  bytes('nodejs.heap.size.used', 'Used size of the JavaScript heap', () => heap().used_heap_size);
  bytes('nodejs.heap.size.limit', 'Maximum size of the JavaScript heap', () => heap().heap_size_limit);
  bytes('nodejs.external.memory', 'Memory outside the heap held by JavaScript objects', () => {
    return heap().external_memory;
  });

  const spaces = sharedReading(() => getHeapSpaceStatistics());
  for (const [index, { space_name }] of getHeapSpaceStatistics().entries()) {
    const tags = { space: space_name.replace(/_space$/, '') };
    const ofSpace = (aspect: string, description: string, read: (space: HeapSpace) => number) =>
      metrics.gauge(`nodejs.heap.space.size.${aspect}`, { unit: 'bytes', description, tags }, () => {
        const space = spaces()[index];
        return space === undefined ? Number.NaN : read(space);
      });
    ofSpace('total', 'Size of a heap space', (space) => space.space_size);
    ofSpace('used', 'Used size of a heap space', (space) => space.space_used_size);
    ofSpace('available', 'Available size of a heap space', (space) => space.space_available_size);
  }

  const { version } = process;
  const [major = '', minor = '', patch = ''] = version.slice(1).split('.');
  const tags = { version, major, minor, patch };
  metrics.gauge('nodejs.version.info', { description: 'Version of Node, in the tags', tags }, () => 1);
}

type HeapSpace = ReturnType<typeof getHeapSpaceStatistics>[number];

import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import type { Metrics } from '../metrics/metrics.ts';
import { sharedReading } from '../metrics/shared-reading.ts';

/** The meters of V8's heap and of its spaces, and the version of Node, under the names that dashboards for Node know. */
export function addHeapMetrics(metrics: Metrics): void {
  const bytes = (name: string, description: string, read: () => number) =>
    metrics.gauge(name, { unit: 'bytes', description }, read);
  const heap = sharedReading(() => getHeapStatistics());
  bytes('nodejs.heap.size.total', 'JavaScript heap', () => heap().total_heap_size);
  bytes('nodejs.heap.size.used', 'Used JavaScript heap', () => heap().used_heap_size);
  bytes(
    'nodejs.heap.size.limit',
    'What the JavaScript heap cannot grow beyond',
    () => heap().heap_size_limit,
  );
  bytes('nodejs.external.memory', 'Memory outside the heap that JavaScript objects hold', () => {
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
    ofSpace('total', 'A space of the JavaScript heap', (space) => space.space_size);
    ofSpace('used', 'What is used of a space of the heap', (space) => space.space_used_size);
    ofSpace('available', 'What is free in a space of the heap', (space) => space.space_available_size);
  }

  const { version } = process;
  const [major = '', minor = '', patch = ''] = version.slice(1).split('.');
  const tags = { version, major, minor, patch };
  metrics.gauge('nodejs.version.info', { description: 'The version of Node, in the tags', tags }, () => 1);
}

type HeapSpace = ReturnType<typeof getHeapSpaceStatistics>[number];

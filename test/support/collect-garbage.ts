import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Bytes of the heap that are in use once all garbage is gone. */
export function heapInUse(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** Bytes of buffers that are in use once all garbage is gone. */
export function buffersInUse(): number {
  collect();
  collect();
  return process.memoryUsage().arrayBuffers;
}

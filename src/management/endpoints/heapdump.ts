import type { Readable } from 'node:stream';
import { getHeapSnapshot, getHeapStatistics } from 'node:v8';
import { refuseFromOtherSite } from '../../http/cross-site.ts';
import type { Exchange, Reply } from '../../http/endpoint.ts';
import { HttpProblem } from '../../http/problem.ts';
import { requestFields } from '../../observability/trace/request-fields.ts';
import { fileHead, fileReply, neverIdle } from '../dumps/file-reply.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';

/** The most memory that a snapshot takes, as a multiple of the used heap. */
const COST = 2.5;
const MEBIBYTE = 1024 * 1024;

/** The heap to dump; that of this process by default. Sizes in bytes. */
export interface Heap {
  readonly used: () => number;
  /** Free memory of the machine or container. */
  readonly available: () => number;
  readonly snapshot: () => Readable;
}

const OWN_HEAP: Heap = {
  used: () => getHeapStatistics().used_heap_size,
  available: () => process.availableMemory(),
  snapshot: getHeapSnapshot,
};

const BUSY = new HttpProblem(429, 'HEAP_DUMP_BUSY', 'A heap dump is under way already', {
  headers: { 'retry-after': '10' },
});

/**
 * The heapdump endpoint. The snapshot stops the process while it is taken and holds everything in memory, secrets
 * included, so its access is none by default.
 */
export function heapDumpEndpoint({ used, available, snapshot }: Heap = OWN_HEAP): ManagementEndpoint {
  let busy = false;

  function dump(exchange: Exchange): Reply {
    refuseFromOtherSite('Dumps', exchange);
    if (busy) throw BUSY;
    const needed = used() * COST;
    const free = available();
    if (needed > free) {
      const inMebibytes = (bytes: number) => `${Math.round(bytes / MEBIBYTE)} MiB`;
      const message = `A heap dump may take ${inMebibytes(needed)} of memory, and ${inMebibytes(free)} are free`;
      throw new HttpProblem(503, 'HEAP_DUMP_MEMORY', message);
    }
    exchange.log.warn(requestFields(exchange), 'heap dump started');
    // The socket's timer runs on while the snapshot stops the process.
    neverIdle(exchange);
    const stream = snapshot();
    busy = true;
    stream.once('close', () => {
      busy = false;
    });
    return fileReply('heapsnapshot', stream);
  }

  return {
    id: 'heapdump',
    about: 'The heap, secrets included, for the memory panel of the developer tools.',
    ownAccess: 'none',
    routes: () => ({ '/heapdump': { get: dump, head: () => fileHead('heapsnapshot'), fast: false } }),
  };
}

import type { Readable } from 'node:stream';
import { getHeapSnapshot, getHeapStatistics } from 'node:v8';
import { HttpProblem } from '../../http/problem.ts';
import { fileHeaders } from '../dumps/file-headers.ts';
import { neverIdle } from '../dumps/never-idle.ts';
import type { Endpoint } from '../endpoint.ts';
import { refuseWithReason } from '../management-errors.ts';
import { addOperations } from '../operations.ts';

/** What a snapshot costs at its worst, as a multiple of the heap that is in use. */
const COST = 2.5;
const MEBIBYTE = 1024 * 1024;

/** Where the endpoint looks; this process when absent. Sizes in bytes. */
export interface Heap {
  readonly used: () => number;
  /** What the machine, or the limit of the container, still has. */
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
 * The heapdump endpoint. The process stands still while the snapshot is taken, and everything in memory is
 * in it, secrets too: so nobody gets one unless it is configured.
 */
export function heapDumpEndpoint({ used, available, snapshot }: Heap = OWN_HEAP): Endpoint {
  let busy = false;
  return {
    id: 'heapdump',
    about: 'Everything in memory, secrets too, for the memory panel of the developer tools.',
    ownAccess: 'none',
    links: [{ name: 'heapdump', path: '/heapdump', templated: false }],
    addRoutes(scope) {
      addOperations(scope, '/heapdump', {
        HEAD: (_request, reply) => reply.headers(fileHeaders('heapsnapshot')).send(),
        GET(request, reply) {
          if (busy) throw BUSY;
          const needed = used() * COST;
          const free = available();
          if (needed > free) {
            const inMebibytes = (bytes: number) => `${Math.round(bytes / MEBIBYTE)} MiB`;
            const reason = `A heap dump may take ${inMebibytes(needed)} of memory, and ${inMebibytes(free)} are free`;
            return refuseWithReason(reply, 503, reason);
          }
          request.log.warn({ reqId: request.id }, 'taking a heap dump');
          // The socket's clock runs on while the process stands still.
          neverIdle(request);
          const stream = snapshot();
          busy = true;
          stream.once('close', () => {
            busy = false;
          });
          return reply.headers(fileHeaders('heapsnapshot')).header('connection', 'close').send(stream);
        },
      });
    },
  };
}

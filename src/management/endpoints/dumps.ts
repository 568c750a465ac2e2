import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { getHeapSnapshot, getHeapStatistics } from 'node:v8';
import { HttpProblem, type Reply, type RequestContext } from '@portico/transport';
import { refuseFromOtherSite } from '../../access/cors.ts';
import { preferred } from '../../core/negotiation.ts';
import { requestFields } from '../../core/trace.ts';
import { COMMON_HEADERS, jsonReply, MEDIA_TYPES, NEGOTIATED_HEADERS } from '../management-errors.ts';
import type { ManagementEndpoint } from '../operations.ts';

const DEFAULT_SECONDS = '10';
const MAX_SECONDS = 60;

const PROFILE_BUSY = new HttpProblem(429, 'CPU_PROFILE_BUSY', 'A CPU profile is being recorded already', {
  headers: { 'retry-after': String(MAX_SECONDS) },
});
const BAD_SECONDS = new HttpProblem(
  400,
  'CPU_PROFILE_SECONDS',
  `seconds must be a whole number from 1 to ${MAX_SECONDS}`,
);

/** The cpuprofile endpoint, whose access is none by default, because profiling slows the process. */
export function cpuProfileEndpoint(record = recordCpuProfile): ManagementEndpoint {
  let busy = false;
  const stopped = new AbortController();

  async function profile(ctx: RequestContext): Promise<Reply> {
    refuseFromOtherSite('Profiles', ctx);
    const { seconds = DEFAULT_SECONDS } = ctx.query;
    const duration = typeof seconds === 'string' && /^[1-9]\d?$/.test(seconds) ? Number(seconds) : undefined;
    if (duration === undefined || duration > MAX_SECONDS) throw BAD_SECONDS;
    if (busy) throw PROFILE_BUSY;
    neverIdle(ctx);
    busy = true;
    const gone = new AbortController();
    ctx.onClose(() => gone.abort());
    try {
      const recorded = await record(duration * 1_000, AbortSignal.any([gone.signal, stopped.signal]));
      return fileReply('cpuprofile', recorded);
    } finally {
      busy = false;
    }
  }

  return {
    id: 'cpuprofile',
    about: 'A CPU profile of the main thread, recorded for some seconds (?seconds=10).',
    ownAccess: 'none',
    routes(scope) {
      // A stop ends a recording early.
      scope.addHook('preClose', (done) => {
        stopped.abort();
        done();
      });
      return { '/cpuprofile': { get: profile, head: () => fileHead('cpuprofile'), fast: false } };
    },
  };
}

/** Upper bound for the memory that a snapshot takes, as a multiple of the used heap. */
const COST = 2.5;
const MEBIBYTE = 1024 * 1024;

/** The heap to dump; by default that of this process. Sizes are in bytes. */
interface Heap {
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

const HEAP_DUMP_BUSY = new HttpProblem(429, 'HEAP_DUMP_BUSY', 'A heap dump is under way already', {
  headers: { 'retry-after': '10' },
});

/** The heapdump endpoint, whose access is none by default: it blocks the process and holds all secrets. */
export function heapDumpEndpoint({ used, available, snapshot }: Heap = OWN_HEAP): ManagementEndpoint {
  let busy = false;

  function dump(ctx: RequestContext): Reply {
    refuseFromOtherSite('Dumps', ctx);
    if (busy) throw HEAP_DUMP_BUSY;
    const needed = used() * COST;
    const free = available();
    if (needed > free) {
      const inMebibytes = (bytes: number) => `${Math.round(bytes / MEBIBYTE)} MiB`;
      const message = `A heap dump may take ${inMebibytes(needed)} of memory, and ${inMebibytes(free)} are free`;
      throw new HttpProblem(503, 'HEAP_DUMP_MEMORY', message);
    }
    ctx.log.warn(requestFields(ctx), 'heap dump started');
    // The socket's timer keeps running while the snapshot blocks the process.
    neverIdle(ctx);
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

const TEXT = 'text/plain;charset=UTF-8';

/** The threaddump endpoint: the stacks of the main thread and every worker, as JSON or as text. */
export function threadDumpEndpoint(read: () => readonly ThreadState[] = readThreads): ManagementEndpoint {
  return {
    id: 'threaddump',
    about: 'The stacks of the main thread and every worker.',
    routes: () => ({
      '/threaddump': {
        get(ctx) {
          const threads = read();
          if (preferred(ctx.headers.accept, [...MEDIA_TYPES, 'text/plain']) === 'text/plain') {
            return { status: 200, type: TEXT, body: asText(threads), headers: NEGOTIATED_HEADERS };
          }
          return { ...jsonReply(ctx, { threads: threads.map(describe) }), headers: NEGOTIATED_HEADERS };
        },
      },
    }),
  };
}

/** In Java's terms, an idle thread is waiting. The numbers are those of a JVM that measures no contention. */
function describe({ id, name, stack }: ThreadState) {
  return {
    threadName: name,
    threadId: id,
    threadState: stack.length === 0 ? 'WAITING' : 'RUNNABLE',
    blockedTime: -1,
    blockedCount: 0,
    waitedTime: -1,
    waitedCount: 0,
    lockOwnerId: -1,
    daemon: false,
    inNative: stack[0]?.native === true,
    suspended: false,
    priority: 5,
    stackTrace: stack.map(describeFrame),
    lockedMonitors: [],
    lockedSynchronizers: [],
  };
}

function describeFrame({ className, methodName, fileName, lineNumber, native }: Frame) {
  return { className, methodName, fileName, lineNumber, nativeMethod: native };
}

function asText(threads: readonly ThreadState[]): string {
  const parts = threads.map(({ id, name, stack }) => {
    const head = `"${name}" #${id}\n   State: ${stack.length === 0 ? 'WAITING' : 'RUNNABLE'}`;
    const rows = stack.map(({ className, methodName, fileName = 'unknown source', lineNumber }) => {
      const called = className === '' ? methodName : `${className}.${methodName}`;
      return `\tat ${called} (${fileName}${lineNumber === -1 ? '' : `:${lineNumber}`})`;
    });
    return [head, ...rows].join('\n');
  });
  return `${new Date().toISOString()}\nThreads of Node.js ${process.version}:\n\n${parts.join('\n\n')}\n`;
}

/** Type and headers of a reply to save as a file, with the time in its name to tell two files apart. */
function fileHead(extension: string): Pick<Reply, 'type' | 'headers'> {
  const time = new Date().toISOString().replaceAll(':', '-').replace(/\..*/, '');
  const disposition = `attachment; filename="portico-${process.pid}-${time}.${extension}"`;
  return {
    type: 'application/octet-stream',
    headers: { ...COMMON_HEADERS, 'content-disposition': disposition },
  };
}

/** A reply that is saved as a file and closes its connection. */
function fileReply(extension: string, body: Reply['body']): Reply {
  const { type, headers } = fileHead(extension);
  return { status: 200, type, body, headers: { ...headers, connection: 'close' } };
}

/** Disables the idle timeout of a connection, which the reply has to close. Needs a request of Fastify. */
function neverIdle(ctx: RequestContext): void {
  const { socket } = ctx.request.raw;
  // An injected request has no real socket.
  if (socket instanceof Socket) socket.setTimeout(0);
}

/** Profiles the main thread for some milliseconds, or until `signal` aborts; resolves to JSON. */
async function recordCpuProfile(milliseconds: number, signal: AbortSignal): Promise<string> {
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

interface Frame {
  readonly className: string;
  readonly methodName: string;
  readonly fileName: string | undefined;
  readonly lineNumber: number;
  /** Whether the frame belongs to Node itself. */
  readonly native: boolean;
}

interface ThreadState {
  readonly id: number;
  readonly name: string;
  /** Innermost frame first; empty if the thread is idle. */
  readonly stack: readonly Frame[];
}

/** The parts of Node's diagnostic report that are used. The rest, above all the environment, is ignored. */
interface Report {
  readonly header: { readonly threadId: number; readonly event: string };
  readonly javascriptStack?: { readonly stack?: readonly string[] };
  readonly workers?: readonly Report[];
}

/** The stacks of all threads. A worker in an uninterruptible system call delays it. */
export function readThreads(): readonly ThreadState[] {
  const report = getReport();
  const workers = (report.workers ?? []).map((worker) => stateOf(worker, workerName(worker)));
  return [stateOf(report, 'main'), ...workers.sort((a, b) => a.id - b.id)];
}

function getReport(): Report {
  // Missing in the types of Node.
  const reporter = process.report as typeof process.report & { excludeNetwork: boolean };
  const { excludeNetwork } = reporter;
  // With the network, the report would resolve the name of every peer.
  reporter.excludeNetwork = true;
  try {
    return reporter.getReport() as unknown as Report;
  } finally {
    reporter.excludeNetwork = excludeNetwork;
  }
}

function workerName({ header }: Report): string {
  return /\[(.*)\]$/.exec(header.event)?.[1] ?? 'worker';
}

function stateOf({ header, javascriptStack }: Report, name: string): ThreadState {
  const stack = (javascriptStack?.stack ?? []).flatMap((row) => parseFrame(row) ?? []);
  return { id: header.threadId, name, stack };
}

/** Parses a row such as `at Pool.take (file:///x/pool.ts:3:7)`; undefined if it is no frame. */
export function parseFrame(row: string): Frame | undefined {
  const text = /^\s*at (?:async )?(.*)$/.exec(row)?.[1];
  if (text === undefined) return undefined;
  const open = text.endsWith(')') ? text.indexOf(' (') : -1;
  const where = open === -1 ? text : text.slice(open + 2, -1);
  const [, place = '', line] = /^(.*?)(?::(\d+))?(?::\d+)?$/.exec(where) ?? [];
  const called = (open === -1 ? '' : text.slice(0, open)).replace(/^new /, '').replace(/ \[as .*\]$/, '');
  const dot = called.lastIndexOf('.');
  return {
    className: dot === -1 ? '' : called.slice(0, dot),
    methodName: called.slice(dot + 1) || '<anonymous>',
    fileName: ['', '<anonymous>', 'native'].includes(place) ? undefined : place,
    lineNumber: line === undefined ? -1 : Number(line),
    native: place === 'native' || place.startsWith('node:'),
  };
}

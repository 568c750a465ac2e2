import { preferred } from '../../http/accept.ts';
import { type Frame, readThreads, type ThreadState } from '../dumps/thread-report.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { MEDIA_TYPES } from '../media-type.ts';
import { jsonReply, NEGOTIATED_HEADERS } from '../replies.ts';

const TEXT = 'text/plain;charset=UTF-8';

/** The threaddump endpoint: the stacks of the main thread and every worker, as JSON or as text. */
export function threadDumpEndpoint(read: () => readonly ThreadState[] = readThreads): ManagementEndpoint {
  return {
    id: 'threaddump',
    about: 'The stacks of the main thread and every worker.',
    routes: () => ({
      '/threaddump': {
        get(exchange) {
          const threads = read();
          if (preferred(exchange.headers.accept, [...MEDIA_TYPES, 'text/plain']) === 'text/plain') {
            return { status: 200, type: TEXT, body: asText(threads), headers: NEGOTIATED_HEADERS };
          }
          return { ...jsonReply(exchange, { threads: threads.map(describe) }), headers: NEGOTIATED_HEADERS };
        },
      },
    }),
  };
}

/** In Java's terms: a thread without a stack waits for an event. The numbers are those of a JVM that measures no contention. */
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

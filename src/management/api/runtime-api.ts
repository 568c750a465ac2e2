import { type ApiOperation, queryParameter } from '../../http/openapi/api.ts';
import { integer, listOf, mapOf, object, type Schema, text } from '../../http/openapi/schema.ts';
import { type EndpointPaths, json, read } from './shapes.ts';

const ratio = { type: 'number', minimum: 0 } as const;

function file(id: string, summary: string, more: Partial<ApiOperation>): ApiOperation {
  const content = { 'application/octet-stream': {} };
  return { id, summary, replies: { 200: { description: 'A file.', content } }, ...more };
}

const exposition: Schema = text('The exposition of Prometheus.');

/** The endpoints about the process. */
export const runtimeApi: EndpointPaths = {
  '/prometheus': {
    get: {
      id: 'scrape',
      summary: 'All measurements, for Prometheus',
      parameters: [queryParameter('includedNames', 'The names of the meters to show.', listOf(text()))],
      replies: {
        200: {
          description: 'As Accept asks for it.',
          content: {
            'text/plain; version=0.0.4; charset=utf-8': exposition,
            'application/openmetrics-text; version=1.0.0; charset=utf-8': exposition,
          },
        },
      },
    },
  },
  '/eventloop': {
    get: read(
      'readEventLoop',
      'How busy the event loop is',
      object({
        window: text('ISO 8601.'),
        utilization: object({ sinceStart: ratio, window: ratio }),
        delay: object({ unit: { const: 'milliseconds' }, min: ratio, mean: ratio, max: ratio }),
      }),
    ),
  },
  '/threaddump': {
    get: {
      id: 'readThreads',
      summary: 'The stacks of the main thread and every worker',
      replies: {
        200: {
          description: 'As Accept asks for it.',
          content: {
            ...json(
              object({
                threads: listOf(
                  object({
                    threadName: text(),
                    threadId: integer(),
                    threadState: text(),
                    stackTrace: listOf(mapOf({})),
                  }),
                ),
              }),
            ),
            'text/plain;charset=UTF-8': text(),
          },
        },
      },
    },
  },
  '/heapdump': {
    get: file('dumpHeap', 'The heap, secrets included', {
      refusals: ['CROSS_SITE', 'HEAP_DUMP_BUSY', 'HEAP_DUMP_MEMORY'],
    }),
  },
  '/cpuprofile': {
    get: file('recordCpuProfile', 'A CPU profile of the main thread', {
      parameters: [
        queryParameter('seconds', 'How long to record.', integer(undefined, { minimum: 1, maximum: 60 })),
      ],
      refusals: ['CROSS_SITE', 'CPU_PROFILE_BUSY', 'CPU_PROFILE_SECONDS'],
    }),
  },
};

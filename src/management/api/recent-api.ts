import { queryParameter } from '../../http/openapi/api.ts';
import { integer, listOf, mapOf, object, oneOfTexts, TIME, text } from '../../http/openapi/schema.ts';
import { HISTORY_WINDOWS } from '../../observability/history/history.ts';
import { type EndpointPaths, read } from './shapes.ts';

const number = { type: 'number' } as const;

/** The endpoints about the recent past of the process. */
export const recentApi: EndpointPaths = {
  '/history': {
    get: read(
      'readHistory',
      'The recent past of the process, column by column',
      object({
        window: oneOfTexts([...HISTORY_WINDOWS]),
        interval: integer('Between two times, in milliseconds.'),
        times: listOf(integer('In milliseconds since the epoch.')),
        columns: mapOf(
          object({
            unit: text(),
            values: listOf({ type: ['number', 'null'], description: 'One for each time.' }),
          }),
        ),
      }),
      {
        parameters: [
          queryParameter('window', 'How far back.', oneOfTexts([...HISTORY_WINDOWS])),
          queryParameter('after', 'Only later times, in milliseconds since the epoch.', integer()),
        ],
        refusals: ['HISTORY_QUERY'],
      },
    ),
  },
  '/logtail': {
    get: read(
      'readLogTail',
      'The last entries of the log',
      object({ lines: listOf(object({ number: integer(), entry: { type: 'object' } })) }),
      {
        parameters: [queryParameter('after', 'Only entries behind the one with this number.', integer())],
        refusals: ['LOG_NUMBER'],
      },
    ),
  },
  '/requests': {
    get: read(
      'listRequests',
      'The last requests of all doors by route, latest first',
      object({
        requests: listOf(
          object({
            number: integer('Since the start.'),
            door: text(),
            route: text('Its template; `none` for a path that there is not.'),
            method: text(),
            status: integer(),
            endedAt: TIME,
            durationMs: number,
          }),
        ),
      }),
    ),
  },
};

import { HttpProblem } from '../../../http/problem.ts';
import { HISTORY_WINDOWS, type History } from '../../../observability/history/history.ts';
import type { ManagementEndpoint } from '../../management-endpoint.ts';
import { jsonReply } from '../../replies.ts';

/** The history endpoint: the recent past of the service, column by column. */
export function historyEndpoint(history: History): ManagementEndpoint {
  return {
    id: 'history',
    about: 'The last 15 minutes, 3 hours or 24 hours of this process (?window=3h).',
    routes: () => ({
      '/history': {
        get(exchange) {
          const { window: given = '15m', after = '0' } = exchange.query;
          const window = HISTORY_WINDOWS.find((each) => each === given);
          if (window === undefined || typeof after !== 'string' || !/^\d{1,15}$/.test(after))
            throw WRONG_QUERY;
          return jsonReply(exchange, { window, ...history.read(window, Number(after)) });
        },
      },
    }),
  };
}

const WRONG_QUERY = new HttpProblem(
  400,
  'HISTORY_QUERY',
  `window has to be one of ${HISTORY_WINDOWS.join(', ')}, and after a time in milliseconds`,
);

import { HttpProblem } from '../../../http/problem.ts';
import type { LogTail } from '../../../observability/log/log-tail.ts';
import type { ManagementEndpoint } from '../../management-endpoint.ts';
import { jsonTextReply } from '../../replies.ts';

/** The logtail endpoint: the last entries of the log, redacted as they were written. */
export function logTailEndpoint(tail: LogTail): ManagementEndpoint {
  return {
    id: 'logtail',
    about: 'The last 1,000 entries of the log (?after=<number>).',
    routes: () => ({
      '/logtail': {
        get(exchange) {
          const { after = '0' } = exchange.query;
          if (typeof after !== 'string' || !/^\d{1,15}$/.test(after)) throw WRONG_NUMBER;
          const lines = tail
            .after(Number(after))
            .map(({ number, line }) => `{"number":${number},"entry":${line.trimEnd()}}`);
          return jsonTextReply(exchange, `{"lines":[${lines.join(',')}]}`);
        },
      },
    }),
  };
}

const WRONG_NUMBER = new HttpProblem(400, 'LOG_NUMBER', 'after has to be the number of a log entry');

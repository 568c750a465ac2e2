import { HttpProblem, type RecordedExchange } from '@portico/transport';
import type { SecretTexts } from '../../core/redaction.ts';
import { HISTORY_WINDOWS, type History } from '../../telemetry/history.ts';
import type { LogTail } from '../../telemetry/loggers.ts';
import type { ExchangeLog, RequestTail } from '../../telemetry/request-stats.ts';
import { jsonReply, jsonTextReply } from '../management-errors.ts';
import { isSecretName, maskText } from '../masking.ts';
import type { ManagementEndpoint } from '../operations.ts';

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
  `window must be one of ${HISTORY_WINDOWS.join(', ')}, and after a time in milliseconds`,
);

/** The logtail endpoint: the last log entries, with the redactions of the log. */
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

const WRONG_NUMBER = new HttpProblem(400, 'LOG_NUMBER', 'after must be the number of a log entry');

/** The requests endpoint: the last replies of all doors by route. Unread, recording costs nothing. */
export function requestsEndpoint(tail: RequestTail): ManagementEndpoint {
  return {
    id: 'requests',
    about: 'The last 500 requests of all doors by route, with status and duration.',
    routes: () => ({
      '/requests': { get: (exchange) => jsonReply(exchange, { requests: tail.latest().map(describe) }) },
    }),
  };
}

function describe({ endedAt, duration, ...request }: ReturnType<RequestTail['latest']>[number]) {
  return { ...request, endedAt: new Date(endedAt).toISOString(), durationMs: duration };
}

/** Maximum length of URIs and header values, because clients choose them. */
const MAX_LENGTH = 2_000;

/** The httpexchanges endpoint: the last exchanges of all doors, latest first. */
export function httpExchangesEndpoint(log: ExchangeLog, secrets: SecretTexts): ManagementEndpoint {
  const clean = (text: string) => maskText(text, secrets).slice(0, MAX_LENGTH);

  function describe(exchange: RecordedExchange) {
    const { endedAt, duration, method, scheme, host, target, status } = exchange;
    const contentType = exchange.contentType ?? undefined;
    return {
      timestamp: new Date(endedAt - duration).toISOString(),
      request: {
        uri: clean(`${scheme}://${host}${target}`),
        method,
        headers: shownHeaders({ ...exchange.requestHeaders, 'content-type': contentType }, clean),
      },
      response: { status, headers: shownHeaders(exchange.responseHeaders(), clean) },
      timeTaken: formatDuration(duration),
    };
  }

  return {
    id: 'httpexchanges',
    about: 'The last 100 requests of all doors and their replies.',
    routes: () => ({
      '/httpexchanges': {
        get: (exchange) => jsonReply(exchange, { exchanges: log.latest().map(describe) }),
      },
    }),
  };
}

type Headers = Readonly<Record<string, number | string | readonly string[] | undefined>>;

/** Removes secret headers: credentials, cookies, tokens, signatures. */
function shownHeaders(headers: Headers, clean: (text: string) => string) {
  const shown = Object.entries(headers).filter(([name, value]) => value !== undefined && !isSecretName(name));
  return Object.fromEntries(
    shown.map(([name, value]) => [name, [value ?? []].flat().map((each) => clean(String(each)))]),
  );
}

const DECIMALS = 6;

/** Formats a duration of at least 0 ms in ISO 8601: `PT1H2M3.004S`, with at most 6 decimals. */
export function formatDuration(durationMs: number): string {
  const unit = 10 ** DECIMALS;
  const total = Math.round((durationMs / 1_000) * unit);
  const hours = Math.floor(total / (3_600 * unit));
  const minutes = Math.floor((total % (3_600 * unit)) / (60 * unit));
  const seconds = ((total % (60 * unit)) / unit).toFixed(DECIMALS).replace(/\.?0+$/, '');
  const text = `${hours > 0 ? `${hours}H` : ''}${minutes > 0 ? `${minutes}M` : ''}${seconds === '0' ? '' : `${seconds}S`}`;
  return `PT${text === '' ? '0S' : text}`;
}

const DURATION = /^P(?:(\d{1,6})D)?(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$/i;

/** Parses an ISO 8601 duration of days and smaller units to milliseconds; undefined if it is none. */
export function parseDuration(text: string): number | undefined {
  const [, ...parts] = DURATION.exec(text) ?? [];
  if (parts.every((part) => part === undefined)) return undefined;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = parts.map((part) => Number(part ?? 0));
  return Math.round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000);
}

import type { SecretTexts } from '../../core/redaction.ts';
import type { ExchangeLog, RecordedExchange } from '../../http/exchange-log.ts';
import { isSecretName, maskText } from '../access/masking.ts';
import { formatDuration } from '../iso-duration.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { jsonReply } from '../replies.ts';

/** Longer URIs and header values are cut: a client chooses them. */
const MAX_LENGTH = 2_000;

/** The httpexchanges endpoint: the last exchanges of all doors, the latest first. */
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

/** Without those that are secret: credentials, cookies, tokens, signatures. */
function shownHeaders(headers: Headers, clean: (text: string) => string) {
  const shown = Object.entries(headers).filter(([name, value]) => value !== undefined && !isSecretName(name));
  return Object.fromEntries(
    shown.map(([name, value]) => [name, [value ?? []].flat().map((each) => clean(String(each)))]),
  );
}

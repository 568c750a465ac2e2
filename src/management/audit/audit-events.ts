import { HttpProblem } from '../../http/problem.ts';
import type { AuditEvent, AuditStore } from '../../observability/audit/audit.ts';
import { maskText } from '../access/masking.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import type { DoorOptions } from '../options.ts';
import { jsonReply } from '../replies.ts';

/** Maximum number of events in a reply: the latest. */
const LIMIT = 1_000;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+ -]\d{2}:?\d{2})$/;

/** The auditevents endpoint, with the parameters and the wire shape of Actuator: refusals of all doors, and actions. */
export function auditEventsEndpoint(
  store: Pick<AuditStore, 'find'>,
  { secrets }: Pick<DoorOptions, 'secrets'>,
): ManagementEndpoint {
  const clean = (value: unknown) => (typeof value === 'string' ? maskText(value, secrets) : value);

  function describe({ at, principal, type, data }: AuditEvent) {
    const shown = Object.entries(data).map(([name, value]) => [name, clean(value)]);
    return {
      timestamp: new Date(at).toISOString(),
      principal: clean(principal),
      type,
      ...(shown.length > 0 && { data: Object.fromEntries(shown) }),
    };
  }

  return {
    id: 'auditevents',
    about: 'Who was refused and who did what (?principal=&after=2026-01-01T00:00Z&type=).',
    routes: () => ({
      '/auditevents': {
        async get(exchange) {
          const { principal, type, after } = exchange.query;
          const events = await store.find({
            principal: textOf('principal', principal),
            type: textOf('type', type),
            after: timeOf(textOf('after', after)),
            limit: LIMIT,
          });
          return jsonReply(exchange, { events: events.map(describe) });
        },
      },
    }),
  };
}

function textOf(name: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  throw new HttpProblem(400, 'AUDIT_QUERY', `${name} is given more than once`);
}

function timeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  // A plus sign in a query is a space.
  const time = TIME.test(text) ? Date.parse(text.replace(' ', '+')) : Number.NaN;
  if (Number.isNaN(time)) {
    throw new HttpProblem(400, 'AUDIT_QUERY', 'after has to be a time of ISO 8601 like 2026-01-01T00:00:00Z');
  }
  return time;
}

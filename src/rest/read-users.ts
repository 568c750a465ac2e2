import { type Endpoint, type Exchange, HttpProblem, preferences, type Reply } from '@portico/transport';
import { type MaybePromise, whenReady } from '../core/maybe-promise.ts';
import { quote } from '../core/text.ts';
import { onlyFields, readFields, readListParameters } from '../relations/lists.ts';
import type { ExportFormat } from '../relations/pages.ts';
import { readUserId } from '../relations/user.ts';
import { askedExport, exporter } from './export-endpoint.ts';
import { listPage, totalHeaders, userLister } from './lists.ts';
import { data, json, NO_SUCH_USER } from './rest-errors.ts';
import type { UserEndpointOptions } from './users.ts';
import {
  isConditional,
  listValidators,
  notModified,
  userValidators,
  validatorHeaders,
} from './validators.ts';

/** GET /users: all users, or the page that the parameters ask for. */
export function readList({ users, prefix }: UserEndpointOptions): Endpoint['handle'] {
  const path = `${prefix}/users`;
  const list = userLister(users, 'json');
  const exportUsers = exporter(users);
  let lastState: string | undefined;
  let lastHeaders: Readonly<Record<string, string>> = {};

  /** The same object as long as the users are, so that the fast path knows the head of the reply. */
  function headersOf(state: string): Readonly<Record<string, string>> {
    if (state !== lastState || lastHeaders['last-modified'] === undefined) {
      lastState = state;
      lastHeaders = validatorHeaders(listValidators(state));
    }
    return lastHeaders;
  }

  const whole = (more?: Reply['headers']) =>
    whenReady(list(), ({ body, state }) =>
      json(body, 200, more === undefined ? headersOf(state) : { ...headersOf(state), ...more }),
    );

  /** All users as lines: pages and filters are those of JSON. */
  function exportAsked(exchange: Exchange, format: ExportFormat): MaybePromise<Reply> {
    const isLenient = preferences(exchange).get('handling') === 'lenient';
    if (readListParameters(exchange.query, isLenient) === undefined) return exportUsers(format, exchange);
    const [name = ''] = Object.keys(exchange.query);
    throw new HttpProblem(
      400,
      'INVALID_PARAMETER',
      `${quote(name)} goes with application/json; CSV and NDJSON have all users`,
    );
  }

  /** Judges what is asked for; the list is read when the result is called. */
  function prepare(exchange: Exchange): () => MaybePromise<Reply> {
    if (exchange.headers.prefer === undefined && isEmpty(exchange.query)) return whole;
    const prefers = preferences(exchange);
    const asked = readListParameters(exchange.query, prefers.get('handling') === 'lenient');
    const counts = prefers.get('count') === 'exact';
    if (asked !== undefined) return () => listPage(users.lists, asked, { path, counts });
    return counts ? () => users.lists.count([]).then((total) => whole(totalHeaders(total))) : whole;
  }

  return (exchange) => {
    const format = askedExport(exchange);
    if (format !== undefined) return exportAsked(exchange, format);
    const read = prepare(exchange);
    if (!isConditional(exchange)) return read();
    // The users are read only where they have changed.
    return whenReady(users.state(), (state) => notModified(exchange, listValidators(state)) ?? read());
  };
}

function isEmpty(query: Exchange['query']): boolean {
  for (const _ in query) return false;
  return true;
}

/** GET /users/<id>. */
export function readUser({ users }: UserEndpointOptions): Endpoint['handle'] {
  return (exchange) => {
    const id = readUserId(exchange.param);
    if (id === undefined) throw NO_SUCH_USER;
    const { fields } = exchange.query;
    const shown = fields === undefined ? undefined : readFields(String(fields));
    return whenReady(users.read(id), (user) => {
      if (user === undefined) throw NO_SUCH_USER;
      const validators = userValidators(user.version);
      if (isConditional(exchange)) {
        const known = notModified(exchange, validators);
        if (known !== undefined) return known;
      }
      const body = data(shown === undefined ? user.json : onlyFields(user.json, shown));
      return json(body, 200, validatorHeaders(validators));
    });
  };
}

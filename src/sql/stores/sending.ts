import { whenReady } from '../../core/scheduler.ts';
import type { SendingStore } from '../../sending/store.ts';
import {
  type Disabled,
  ENDPOINT_STATES,
  MAX_ENDPOINTS,
  type StoredEndpoint,
  type StoredEventType,
  type StoredTenant,
  type TenantVersion,
} from '../../sending/store.ts';
import { queries, type Row, type Sql, type Step } from './sql.ts';

const ENDPOINT =
  'seq, id, tenant, settings, secrets, disabled, failing_since, created_at, updated_at, disabled_at';
const TENANT = 'seq, name, description, created_at';
/** The last column tells whether the tenant has an endpoint that is enabled: one look into an index for each tenant. */
const VERSION = `name, version, CASE WHEN (
      SELECT seq FROM webhook_endpoints WHERE tenant = webhook_tenants.name AND disabled IS NULL ORDER BY seq LIMIT 1)
    IS NULL THEN 0 ELSE 1 END`;
const TYPE = 'seq, name, settings, created_at, updated_at';

/** The place of an endpoint's state in ENDPOINT_STATES, as the index has it. */
const STATE = `CASE WHEN disabled IN ('failing', 'gone') THEN 0 WHEN disabled IS NOT NULL THEN 2 WHEN failing_since IS NOT NULL THEN 1 ELSE 3 END`;
/** Endpoints of a state that are counted at most. */
const COUNTED = 10_000;
const countOf = (state: number) =>
  `(SELECT count(*) FROM (SELECT 1 FROM webhook_endpoints WHERE ${STATE} = ${state} LIMIT ${COUNTED}) AS state${state})`;

/** Gives the tenant of a change another version. */
const bumped = (condition: string) => `UPDATE webhook_tenants SET version = version + 1 WHERE ${condition}`;

export const SENDING_QUERIES = queries('sending', (sql) => ({
  // One snapshot of the version and of the endpoints: without any endpoint, a row of the version alone.
  subscribers: `
    SELECT coalesce((SELECT version FROM webhook_tenants WHERE name = $1), 0), ${ENDPOINT}
    FROM (SELECT 1 AS one) AS always LEFT JOIN webhook_endpoints ON tenant = $1 AND disabled IS NULL ORDER BY seq`,
  versions: `SELECT ${VERSION} FROM webhook_tenants WHERE name > $1 ORDER BY name LIMIT $2 + 0`,
  versionsOf: `SELECT ${VERSION} FROM webhook_tenants WHERE ${sql.isIn('name', '$1', 'text')}`,
  endpointsOf: `SELECT ${ENDPOINT} FROM webhook_endpoints WHERE ${sql.isIn('id', '$1', 'text')}`,
  endpoints: `
    SELECT ${ENDPOINT} FROM webhook_endpoints WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3 + 0`,
  // PostgreSQL would walk through the key if the state were one value: it may be rare.
  inState: `
    SELECT ${ENDPOINT} FROM webhook_endpoints
    WHERE ${sql.either(`${STATE} = $1 AND seq > $2`, `(${STATE}, seq) > ($1, $2) AND ${STATE} <= $1`)}
    ORDER BY ${STATE}, seq LIMIT $3 + 0`,
  // The sum keeps the index of states out: a tenant has fewer endpoints than a state.
  inStateOf: `
    SELECT ${ENDPOINT} FROM webhook_endpoints
    WHERE tenant = $4 AND ${STATE} + 0 = $1 AND seq > $2 ORDER BY seq LIMIT $3 + 0`,
  stateCounts: { long: `SELECT ${ENDPOINT_STATES.map((_, state) => countOf(state)).join(', ')}` },
  stateCountsOf: `
    SELECT ${ENDPOINT_STATES.map((_, state) => `count(CASE WHEN ${STATE} = ${state} THEN 1 END)`).join(', ')}
    FROM webhook_endpoints WHERE tenant = $1`,
  endpoint: `SELECT ${ENDPOINT} FROM webhook_endpoints WHERE id = $2 AND tenant = $1`,
  // The row of the tenant orders concurrent changes of its endpoints. Versions begin with the time, so that a tenant that
  // is removed and made again has no version twice.
  touchTenant: `
    INSERT INTO webhook_tenants (name, version, created_at) VALUES ($1, $2, $2)
    ON CONFLICT (name) DO UPDATE SET version = webhook_tenants.version + 1`,
  createEndpoint: `
    INSERT INTO webhook_endpoints (id, tenant, settings, secrets, disabled, created_at, updated_at, disabled_at)
    SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text), CAST($5 AS text),
      CAST($6 AS bigint), CAST($6 AS bigint), CASE WHEN $5 IS NOT NULL THEN CAST($6 AS bigint) END
    WHERE (SELECT count(*) FROM webhook_endpoints WHERE tenant = $2) < ${MAX_ENDPOINTS} RETURNING ${ENDPOINT}`,
  changeEndpoint: `
    UPDATE webhook_endpoints SET settings = $3, secrets = $4, disabled = CAST($5 AS text), failing_since = $6,
      disabled_at = CASE WHEN $5 IS NOT NULL THEN coalesce(disabled_at, CAST($7 AS bigint)) END,
      updated_at = ${sql.greatest('updated_at + 1', 'CAST($7 AS bigint)')}
    WHERE id = $1 AND updated_at = $2 RETURNING ${ENDPOINT}`,
  removeEndpoint: 'DELETE FROM webhook_endpoints WHERE id = $2 AND tenant = $1 RETURNING seq',
  disableEndpoint: `
    UPDATE webhook_endpoints SET disabled = $3, disabled_at = CAST($4 AS bigint), updated_at = ${sql.greatest('updated_at + 1', 'CAST($4 AS bigint)')}
    WHERE id = $2 AND tenant = $1 AND disabled IS NULL RETURNING seq`,
  noteFailing: `
    UPDATE webhook_endpoints SET failing_since = CAST($2 AS bigint)
    WHERE ${sql.among(
      'seq',
      `SELECT seq FROM webhook_endpoints
       WHERE ${sql.isIn('id', '$1', 'text')} AND (failing_since IS NULL) <> (CAST($2 AS bigint) IS NULL) ORDER BY seq ${sql.lock}`,
    )}`,
  tenants: `SELECT ${TENANT} FROM webhook_tenants WHERE seq > $1 ORDER BY seq LIMIT $2 + 0`,
  tenant: `SELECT ${TENANT} FROM webhook_tenants WHERE name = $1`,
  putTenant: `
    INSERT INTO webhook_tenants (name, description, version, created_at) VALUES ($1, $2, $3, $3)
    ON CONFLICT (name) DO UPDATE SET description = excluded.description RETURNING ${TENANT}`,
  removeEndpoints: 'DELETE FROM webhook_endpoints WHERE tenant = $1',
  removeTenant: 'DELETE FROM webhook_tenants WHERE name = $1 RETURNING seq',
  bumpTenant: bumped('name = $1'),
  eventTypes: `SELECT ${TYPE} FROM webhook_event_types WHERE seq > $1 ORDER BY seq LIMIT $2 + 0`,
  eventType: `SELECT ${TYPE} FROM webhook_event_types WHERE name = $1`,
  putEventType: `
    INSERT INTO webhook_event_types (name, settings, created_at, updated_at) VALUES ($1, $2, $3, $3)
    ON CONFLICT (name) DO UPDATE SET settings = excluded.settings,
      updated_at = ${sql.greatest('webhook_event_types.updated_at + 1', 'excluded.updated_at')} RETURNING ${TYPE}`,
  removeEventType: 'DELETE FROM webhook_event_types WHERE name = $1 RETURNING seq',
}));

/** Tenants, endpoints and event types of a database. */
export function sendingStore(sql: Sql): SendingStore {
  const q = SENDING_QUERIES;
  const first = <T>(rows: readonly Row[], read: (row: Row) => T): T | undefined => {
    const [row] = rows;
    return row && read(row);
  };
  const touch = (tenant: string, now: number): Step => [q.touchTenant, tenant, now];
  return {
    subscribers: (tenant) =>
      whenReady(sql.read(q.subscribers, tenant), (rows) => ({
        version: Number(rows[0]?.[0] ?? 0),
        endpoints: rows.flatMap(([, ...row]) => (row[0] === null ? [] : [endpointOf(row)])),
      })),
    versions: ({ after, limit }) =>
      whenReady(sql.read(q.versions, after, limit), (rows) => rows.map(versionOf)),
    versionsOf: (names) => whenReady(sql.read(q.versionsOf, names), (rows) => rows.map(versionOf)),
    endpointsOf: (ids) => whenReady(sql.read(q.endpointsOf, ids), (rows) => rows.map(endpointOf)),
    endpoints: (tenant, { after, limit }) =>
      whenReady(sql.read(q.endpoints, tenant, after, limit), (rows) => rows.map(endpointOf)),
    async inStates(states, { tenant, after: [first, seq], limit }) {
      const found: StoredEndpoint[] = [];
      for (const [at, state] of ENDPOINT_STATES.entries()) {
        if (found.length === limit) break;
        if (at < first || !states.includes(state)) continue;
        const range = [at, at === first ? seq : 0, limit - found.length] as const;
        const rows = await (tenant === undefined
          ? sql.read(q.inState, ...range)
          : sql.read(q.inStateOf, ...range, tenant));
        found.push(...rows.map(endpointOf));
      }
      return found;
    },
    countStates: (tenant) =>
      whenReady(
        tenant === undefined ? sql.read(q.stateCounts) : sql.read(q.stateCountsOf, tenant),
        ([row = []]) =>
          Object.fromEntries(ENDPOINT_STATES.map((state, at) => [state, Number(row[at] ?? 0)])) as Awaited<
            ReturnType<SendingStore['countStates']>
          >,
      ),
    endpoint: (tenant, id) => whenReady(sql.read(q.endpoint, tenant, id), (rows) => first(rows, endpointOf)),
    async createEndpoint({ id, tenant, settings, secrets, disabled, createdAt }) {
      const [, made = []] = await sql.write(touch(tenant, createdAt), [
        q.createEndpoint,
        id,
        tenant,
        JSON.stringify(settings),
        JSON.stringify(secrets),
        disabled,
        createdAt,
      ]);
      return first(made, endpointOf);
    },
    async changeEndpoint({ id, tenant, updatedAt }, { settings, secrets, disabled, failingSince }, now) {
      const [, changed = []] = await sql.write(
        [q.bumpTenant, tenant],
        [
          q.changeEndpoint,
          id,
          updatedAt,
          JSON.stringify(settings),
          JSON.stringify(secrets),
          disabled,
          failingSince,
          now,
        ],
      );
      return first(changed, endpointOf);
    },
    async removeEndpoint(tenant, id) {
      const [, removed = []] = await sql.write([q.bumpTenant, tenant], [q.removeEndpoint, tenant, id]);
      return removed.length > 0;
    },
    async disableEndpoint(tenant, id, why, now) {
      const [, disabled = []] = await sql.write(
        [q.bumpTenant, tenant],
        [q.disableEndpoint, tenant, id, why, now],
      );
      return disabled.length > 0;
    },
    async noteFailing(ids, since) {
      await sql.write([q.noteFailing, ids, since]);
    },
    tenants: ({ after, limit }) => whenReady(sql.read(q.tenants, after, limit), (rows) => rows.map(tenantOf)),
    tenant: (name) => whenReady(sql.read(q.tenant, name), (rows) => first(rows, tenantOf)),
    async putTenant(name, description, now) {
      const [[row = []] = []] = await sql.write([q.putTenant, name, description, now]);
      return tenantOf(row);
    },
    async removeTenant(name) {
      const [, , removed = []] = await sql.write(
        [q.bumpTenant, name],
        [q.removeEndpoints, name],
        [q.removeTenant, name],
      );
      return removed.length > 0;
    },
    eventTypes: ({ after, limit }) =>
      whenReady(sql.read(q.eventTypes, after, limit), (rows) => rows.map(eventTypeOf)),
    eventType: (name) => whenReady(sql.read(q.eventType, name), (rows) => first(rows, eventTypeOf)),
    async putEventType({ name, ...settings }, now) {
      const [[row = []] = []] = await sql.write([q.putEventType, name, JSON.stringify(settings), now]);
      return eventTypeOf(row);
    },
    async removeEventType(name) {
      const [removed = []] = await sql.write([q.removeEventType, name]);
      return removed.length > 0;
    },
  };
}

const timeOf = (value: unknown) => (value === null ? null : Number(value));

function endpointOf(row: Row): StoredEndpoint {
  const [seq, id, tenant, settings, secrets, disabled, failingSince, createdAt, updatedAt, disabledAt] = row;
  return {
    seq: Number(seq),
    id: String(id),
    tenant: String(tenant),
    settings: JSON.parse(String(settings)),
    secrets: JSON.parse(String(secrets)),
    disabled: disabled === null ? null : (String(disabled) as Disabled),
    disabledAt: timeOf(disabledAt),
    failingSince: timeOf(failingSince),
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
  };
}

function versionOf([name, version, hasEndpoint]: Row): TenantVersion {
  return { name: String(name), version: Number(version), hasEndpoint: Number(hasEndpoint) === 1 };
}

function tenantOf([seq, name, description, createdAt]: Row): StoredTenant {
  return {
    seq: Number(seq),
    name: String(name),
    description: String(description),
    createdAt: Number(createdAt),
  };
}

function eventTypeOf([seq, name, settings, createdAt, updatedAt]: Row): StoredEventType {
  const { description = '', schema, example } = JSON.parse(String(settings));
  return {
    seq: Number(seq),
    name: String(name),
    description,
    schema,
    example,
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
  };
}

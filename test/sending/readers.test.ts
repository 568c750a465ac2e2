import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startReceiver } from '../support/receiver.ts';
import { runOn, type SendingService, startSending, storedEngines } from '../support/sending.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

interface Row {
  readonly org: string | null;
  readonly alias: string | null;
  readonly number: number | null;
  readonly shared: boolean;
  readonly team_id: number | null;
}

const caller = { caller: '/org' };
/** The orgs of the teams, by their ids. */
const TEAMS = ['acme', 'beta', '7'];
const teamOf = ({ team_id }: Row) => (team_id === null ? undefined : TEAMS[team_id - 1]);

/** Rules by the relation that has them, each with the tenants that it lets read a row. */
const RULES: Readonly<
  Record<string, { readonly read: readonly unknown[]; may(row: Row, tenant: string): boolean }>
> = {
  owns: { read: [{ where: { org: caller } }], may: ({ org }, tenant) => org === tenant },
  shares: {
    read: [{ where: { org: { in: caller } } }, { where: { shared: true } }],
    may: ({ org, shared }, tenant) => shared || org === tenant,
  },
  boths: {
    read: [{ where: { shared: true, org: caller } }],
    may: ({ org, shared }, tenant) => shared && org === tenant,
  },
  aliases: {
    read: [{ where: { alias: caller } }],
    may: ({ alias }, tenant) => alias?.toLowerCase() === tenant.toLowerCase(),
  },
  numbers: {
    read: [{ where: { number: caller } }],
    may: ({ number }, tenant) => number !== null && String(number) === tenant,
  },
  others: { read: [{ where: { org: { ne: caller } } }], may: ({ org }, tenant) => org !== tenant },
  crossings: {
    read: [{ where: { team: { org: caller } } }, { where: { org: caller } }],
    may: (row, tenant) => row.org === tenant || teamOf(row) === tenant,
  },
  strangers: {
    read: [{ where: { not: { team: { org: caller } } } }],
    may: (row, tenant) => teamOf(row) !== tenant,
  },
  publics: { read: [{ where: { shared: true } }], may: ({ shared }) => shared },
  opens: { read: ['anyone'], may: () => true },
};

const NAMES = Object.keys(RULES);
const one = (name: string) => (name === 'aliases' ? 'alias' : name.slice(0, -1));
/** Tenants with the types that their endpoints take; null for an endpoint that is disabled. */
const TENANTS: Readonly<Record<string, readonly string[] | null>> = {
  acme: ['*'],
  Acme: ['*'],
  beta: ['*'],
  '7': ['*'],
  removals: [...NAMES.map((name) => `${one(name)}.deleted`), 'end.created'],
  off: null,
};

const staff = { scope: 'staff' };
const writes = { create: staff, update: staff, delete: staff };
const declaration = {
  relations: {
    teams: { columns: { org: { type: 'text', max: 64 } } },
    ...Object.fromEntries(
      Object.entries(RULES).map(([name, { read }]) => [
        name,
        {
          one: one(name),
          columns: {
            id: { type: 'serial' },
            title: { type: 'text', max: 64 },
            org: { type: 'text', max: 64, nullable: true },
            alias: { type: 'text', max: 64, nullable: true, fold: true },
            number: { type: 'integer', nullable: true },
            shared: { type: 'boolean', default: false },
            team: { type: 'reference', to: 'teams', nullable: true },
            cost: { type: 'integer', default: 5, read: staff },
          },
          rules: { read: [staff, ...read], ...writes },
        },
      ]),
    ),
    ends: {
      columns: { id: { type: 'serial' } },
      rules: { read: 'anyone', ...writes },
    },
  },
  api: { tokens: { staff: { secret: 's'.repeat(40), scopes: ['staff'] } } },
};
const module = JSON.stringify(declaration).slice(1, -1);
const changes = Object.fromEntries([...NAMES, 'ends'].map((name) => [name, { reader: '/org' }]));

const FIRST: Row = { org: 'acme', alias: 'ACME', number: null, shared: false, team_id: null };
/** What happens to the row of each relation, in order; undefined removes it. */
const SCRIPT: readonly (Partial<Row> | undefined)[] = [
  FIRST,
  {},
  { org: 'beta' },
  { alias: 'nobody-of-them', number: 7 },
  { shared: true },
  { team_id: 1 },
  { team_id: 2 },
  { shared: false, org: null },
  { team_id: 3, number: 8 },
  { org: 'removals' },
  undefined,
];

/** The events of a tenant as [type, whether with the row]. */
function expected(name: string, tenant: string): readonly unknown[] {
  const { may } = RULES[name] ?? assert.fail(name);
  const taken = TENANTS[tenant] ?? [];
  const found: [string, boolean][] = [];
  let row: Row | undefined;
  for (const step of SCRIPT) {
    const after: Row | undefined = step && { ...(row ?? FIRST), ...step };
    const kind = step === undefined ? 'deleted' : row === undefined ? 'created' : 'updated';
    const seen = after ?? row;
    if (seen !== undefined && may(seen, tenant)) found.push([kind, true]);
    else if (row !== undefined && kind === 'updated' && may(row, tenant)) found.push(['deleted', false]);
    row = after;
  }
  return found
    .map(([kind, isSeen]) => [`${one(name)}.${kind}`, isSeen])
    .filter(([type]) => taken.includes('*') || taken.includes(String(type)));
}

/** A service with the endpoints of all tenants, whose writes are those of a caller with the scope of the rules. */
async function prepared(url: string, receiver: { readonly url: string }) {
  const sending = await startSending(url, { changes }, `${module},`);
  const write = async (method: string, path: string, body?: unknown) => {
    const reply = await sending.call(method, path, body, { authorization: `Bearer ${'s'.repeat(40)}` });
    assert.ok(reply.status < 300, JSON.stringify(reply.body));
    return reply.body;
  };
  return { sending, write, receiver };
}

async function addEndpoints({ sending, receiver }: Awaited<ReturnType<typeof prepared>>) {
  for (const [tenant, types] of Object.entries(TENANTS))
    await sending.endpoint(tenant, {
      url: `${receiver.url}/${tenant}`,
      ...(types === null ? { enabled: false } : { types }),
    });
}

/** The events of a tenant, oldest first. */
async function stored({ call }: SendingService, tenant: string) {
  // A busy machine has no connection for a read now and then.
  const get = (path: string) =>
    waitFor(path, async () => {
      const { status, body } = await call('GET', `/webhooks/tenants/${tenant}/events${path}`);
      assert.ok(status === 200 || status === 503, JSON.stringify(body));
      return status === 200 && body;
    });
  const { items, next } = await get('?limit=500');
  assert.equal(next ?? null, null);
  const events = [];
  for (const { id } of items.toReversed()) events.push(await get(`/${id}`));
  return events;
}

for (const [engine, { skip, url: urlOf }] of Object.entries(storedEngines)) {
  describe(`changes for the tenants that may read them on ${engine}`, { skip }, () => {
    test('each tenant gets what the feed of changes would show it, once', async () => {
      await using folder = await temporaryFolder();
      await using receiver = await startReceiver();
      const url = await urlOf(folder.path);
      let done = 0;
      const isDone = async ({ sending }: { readonly sending: SendingService }) =>
        ((await sending.call('GET', '/webhooks/tenants/acme/events?type=end.created')).body.items ?? [])
          .length > done;
      const check = async ({ sending }: { readonly sending: SendingService }) => {
        for (const tenant of [...Object.keys(TENANTS), 'idle']) {
          const events = await stored(sending, tenant);
          for (const name of NAMES) {
            const own = events.filter(({ type }) => type.startsWith(`${one(name)}.`));
            const found = own.map(({ type, body }) => [type, body.data.row !== undefined]);
            assert.deepEqual(found, expected(name, tenant), `${name} for ${tenant}`);
            for (const { body } of own) assert.equal('cost' in (body.data.row ?? {}), false);
          }
        }
      };
      {
        const world = await prepared(url, receiver);
        await using sending = world.sending;
        await addEndpoints(world);
        // Several pages of tenants.
        const more = Array.from({ length: 401 }, (_, i) => `('more-${i}', 1, 1)`).join();
        await runOn(url, `INSERT INTO webhook_tenants (name, version, created_at) VALUES ${more}`);
        for (const org of TEAMS) await world.write('POST', '/teams', { org });
        const ids = new Map<string, number>();
        for (const [i, step] of SCRIPT.entries())
          for (const name of NAMES) {
            const title = `step ${i}`;
            if (step === undefined) await world.write('DELETE', `/${name}/${ids.get(name)}`);
            else if (i === 0)
              ids.set(name, (await world.write('POST', `/${name}`, { ...step, title, cost: 5 })).id);
            else await world.write('PATCH', `/${name}/${ids.get(name)}`, { ...step, title });
          }
        await world.write('POST', '/ends', {});
        await waitFor('the last change', () => isDone({ sending }));
        await check({ sending });
        const sent = Object.keys(TENANTS).flatMap((tenant) =>
          NAMES.flatMap((name) => expected(name, tenant)),
        );
        await waitFor('the requests', () => receiver.got.length >= sent.length + 5);
        done++;
      }
      // As if the process had ended after it published, and before it recorded how far it had come.
      const first =
        'SELECT position, at FROM relation_events WHERE position IS NOT NULL ORDER BY position LIMIT 1';
      await runOn(url, `UPDATE relation_relay SET (position, at) = (${first})`);
      const again = await prepared(url, receiver);
      await using sending = again.sending;
      await again.write('POST', '/ends', {});
      await waitFor('the change after it', () => isDone({ sending }));
      await check({ sending });
    });
  });
}

test('a reader whose claim lets no tenant read is refused', async () => {
  const read = (...rule: readonly unknown[]) => ({ rules: { read: rule, create: 'anyone' } });
  const cases: readonly (readonly [unknown, object, RegExp])[] = [
    [{ reader: '/org' }, {}, /notes\.reader needs rules, and notes has none; name a column with "tenant"/],
    [{ reader: '/org' }, read(staff), /notes\.reader lets no tenant read: .*scopes/],
    [
      { reader: '/org' },
      read({ where: { org: { caller: '/sub' } } }),
      /notes\.reader is "\/org", but .*"\/sub"/,
    ],
    [{ reader: 'org' }, read('anyone'), /notes\.reader must be the JSON pointer of a claim/],
    [{ reader: '/org', tenant: 'org' }, read('anyone'), /notes needs either "tenant", a column, or "reader"/],
    [{}, read('anyone'), /notes needs either "tenant", a column, or "reader"/],
    [{ tenant: 'ork' }, {}, /notes\.tenant is not a column of notes; did you mean "?org"?/],
  ];
  for (const [notes, more, problem] of cases) {
    const relations = { notes: { columns: { org: { type: 'text', max: 9 } }, ...more } };
    const config = { relations, webhook: { sending: { changes: { notes } } } };
    const started = startTestService({ module: `export default ${JSON.stringify(config)};` });
    await assert.rejects(started, problem);
  }
});

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { fillSqlite } from '../support/fill-sqlite.ts';
import { proofCount } from '../support/proof-settings.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** More than one request looks at, and more users than are looked at one by one. */
const DELIVERIES = proofCount('PORTICO_CONSOLE_DELIVERIES', 12_000, 12_000);
const USERS = proofCount('PORTICO_CONSOLE_USERS', 20_000, 20_000);

interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | number | null;
  readonly prev?: string | null;
}

test(`the pages of ${DELIVERIES} deliveries and ${USERS} users, near and far`, {
  timeout: 3_600_000,
}, async (t) => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'portico.db');
  await fillSqlite(file, { users: USERS, deliveries: DELIVERIES, search: 'keys' });
  const env = { DATABASE_URL: `sqlite:${file}`, REST_SEARCH: 'keys', WEBHOOK_RETENTION: '0' };
  await using service = await startTestService({ env });
  await service.listen();
  async function ask<T>(path: string): Promise<Page<T>> {
    const started = performance.now();
    const response = await fetch(`${service.urls.management}/actuator/console/api/${path}`);
    const text = await response.text();
    t.diagnostic(`${(performance.now() - started).toFixed(1)} ms: ${path.slice(0, 60)}`);
    assert.equal(response.status, 200, text);
    return JSON.parse(text) as Page<T>;
  }
  type User = { readonly id: number; readonly name: string };
  const users = async (query: string) => {
    const page = await ask<User>(`users?limit=3&${query}`);
    return { ...page, names: page.items.map(({ name }) => name) };
  };
  const last = `name ${USERS}`;

  assert.deepEqual((await users('')).names[0], last);
  const byName = await users('sort=name');
  assert.deepEqual(byName.names, ['name 1', 'name 10', 'name 100']);
  const second = await users(`sort=name&cursor=${byName.next}`);
  assert.deepEqual((await users(`sort=name&cursor=${second.prev}`)).names, byName.names);
  const far = await users('sort=-email');
  assert.deepEqual([far.names, typeof far.next], [['name 9', 'name 99', 'name 999'], 'string']);
  assert.deepEqual((await users(`email=${encodeURIComponent(`E${USERS}@X.ORG`)}`)).names, [last]);
  assert.deepEqual((await users(`name:prefix=${encodeURIComponent(last)}`)).names, [last]);
  assert.deepEqual((await users(`id=${USERS / 2}`)).names, [`name ${USERS / 2}`]);

  type Delivery = { readonly seq: number; readonly id: string };
  const deliveries = (query: string) => ask<Delivery>(`deliveries?limit=5&${query}`);
  assert.equal((await deliveries('')).items[0]?.seq, DELIVERIES);
  const middle = DELIVERIES / 2;
  assert.equal((await deliveries(`before=${middle}`)).items[0]?.seq, middle - 1);
  assert.ok((await deliveries('status=dead')).items.every(({ seq }) => seq % 100 === 0));
  const [first] = (await deliveries('before=2')).items;
  const { id } = (await ask<never>(`deliveries/${first?.id}`)) as unknown as Delivery;
  assert.equal(id, first?.id);
});

test('a search that no index answers says what the operator can do', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'portico.db');
  await fillSqlite(file, { users: 10_001, deliveries: 1, search: 'none' });
  await using service = await startTestService({ env: { DATABASE_URL: `sqlite:${file}` } });
  await service.listen();
  const api = `${service.urls.management}/actuator/console/api`;
  for (const query of ['q=ada', 'sort=name']) {
    const refused = await fetch(`${api}/users?${query}`);
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /REST_SEARCH/);
  }
  assert.equal((await fetch(`${api}/users?sort=-id`)).status, 200);
});

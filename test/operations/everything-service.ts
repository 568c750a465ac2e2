import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

const MODULE = `export default {
  webhook: {
    sources: { signed: { scheme: 'github', secrets: 'secret' } },
    handlers: {
      fine: () => {},
      broken: { handler: () => { throw new Error('broken'); }, attempts: 1 },
      filtered: { handler: () => {}, when: () => false },
    },
  },
};`;
/** A meter takes so many series. */
const FULL = 1_000;
const BATCH = 100;
const JSON_BODY = { 'content-type': 'application/json' };

/** A service with all meters, which has done something that each of them counts. */
export async function startEverything() {
  await using cleanup = new AsyncDisposableStack();
  const backups = cleanup.use(await temporaryFolder()).path;
  const service = await startTestService({
    database: 'file',
    module: MODULE,
    env: {
      MANAGEMENT_INCLUDE: '*',
      GRAPHQL_MAX_BATCH: String(BATCH),
      BACKUP_EVERY: '1h',
      BACKUP_FOLDER: backups,
      // Nobody listens there, which changes nothing for the meters.
      SPRING_BOOT_ADMIN_URL: 'http://127.0.0.1:9',
    },
  });
  cleanup.use(service);
  await service.listen();
  const { rest = '', graphql = '', webhook = '', management = '' } = service.urls;
  const send = async (url: string, body: unknown) => {
    const reply = await fetch(url, { method: 'POST', headers: JSON_BODY, body: JSON.stringify(body) });
    return { status: reply.status, text: await reply.text() };
  };
  const resources = cleanup.move();
  return {
    scrapeUrl: `${management}/actuator/prometheus`,
    /** A little of all work. */
    async work() {
      await send(`${rest}/users`, { name: 'ann', email: 'a@b' });
      for (let i = 0; i < 70; i++) await (await fetch(`${rest}/users/1`)).text();
      for (const event of ['fine', 'broken', 'filtered', 'nobody'])
        await send(`${webhook}/webhook`, { event });
      await send(`${webhook}/webhook/signed`, {});
      await send(`${graphql}/graphql`, { query: '{ hello }' });
      await (await fetch(`${management}/actuator/health`)).text();
    },
    /** Fills a meter with the names of operations. */
    async overflow() {
      for (let first = 0; first <= FULL; first += BATCH) {
        const batch = Array.from({ length: BATCH }, (_, i) => ({ query: `query Q${first + i} { hello }` }));
        await send(`${graphql}/graphql`, batch);
      }
    },
    /** Waits until the text for Prometheus has a name. */
    scraped: (name: string) =>
      waitFor(
        name,
        async () => (await (await fetch(`${management}/actuator/prometheus`)).text()).includes(name),
        // A backup is checked at a low priority.
        60_000,
      ),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

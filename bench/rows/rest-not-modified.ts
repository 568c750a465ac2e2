import type { HttpRequest } from '../load/load.ts';
import { type Contender, compare } from '../measure/compare.ts';
import { checkSameAnswers } from '../measure/same-answers.ts';
import { summarise } from '../measure/summary.ts';
import type { Row } from '../row.ts';
import { startPorticoUsers, startUsersPeer } from '../servers/rest.ts';
import type { Server } from '../servers/server.ts';

const USERS = 100;
const LIST: HttpRequest = { method: 'GET', path: '/users' };

export const restNotModified: Row = {
  name: 'rest-not-modified',
  title: `REST: 304 of a list of ${USERS} users`,
  about:
    `GET \`/users\` with the ETag of the last reply, ${USERS} users in SQLite, 64 connections: all replies are 304. ` +
    'The tag of Express is a digest of the reply, as its own tags are; that of Portico names the state of all users.',
  async run(bench) {
    const servers = {
      Portico: await startPorticoUsers(bench, USERS),
      Express: await startUsersPeer(bench, 'express-lists', USERS),
    };
    await checkSameAnswers(servers, [LIST]);
    const contenders: Contender[] = [];
    for (const [label, server] of Object.entries(servers)) {
      contenders.push({ label, server, requests: [await conditional(server)] });
    }
    const measured = await compare(bench, contenders, { connections: 64 });
    return summarise({
      measured,
      targets: { rate: { Express: 3 }, p99: 1 },
      name: this.name,
      title: this.title,
    });
  },
};

/** A conditional request for the list; rejects unless the server answers it with 304. */
async function conditional({ origin }: Server): Promise<HttpRequest> {
  const url = origin + LIST.path;
  const first = await fetch(url);
  await first.arrayBuffer();
  const headers = { 'if-none-match': first.headers.get('etag') ?? '' };
  const again = await fetch(url, { headers });
  if (again.status !== 304) throw new Error(`${url} answers ${again.status} to its own ETag`);
  return { ...LIST, headers };
}

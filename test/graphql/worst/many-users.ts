import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type PorticoProcess, startPortico } from '../../support/portico-process.ts';
import { runCommand } from '../../support/run-command.ts';

/** A service over so many users in the database of a folder. */
export async function startWithDatabase(cwd: string, users: number): Promise<PorticoProcess> {
  await runCommand(['migrate'], { cwd });
  using database = new DatabaseSync(join(cwd, 'portico.db'));
  database
    .prepare(
      `INSERT INTO users (name, email)
       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       SELECT 'user number ' || i, 'user' || i || '@example.com' FROM n`,
    )
    .run(users);
  const portico = startPortico({ cwd, env: { INTERFACES: 'graphql', GRAPHQL_USERS: 'database' } });
  await portico.ready();
  return portico;
}

const AT_ONCE = 8;
const PER_DOCUMENT = 30;

/** A service with so many users in memory, with more in its environment and at the end of each name. */
export async function startWithMemory(
  cwd: string,
  users: number,
  env: Readonly<Record<string, string>> = {},
  ending = '',
): Promise<PorticoProcess> {
  const portico = startPortico({
    cwd,
    env: { INTERFACES: 'graphql', GRAPHQL_MAX_USERS: String(users + 2), ...env },
  });
  await portico.ready();
  let created = 0;
  const create = async () => {
    while (created < users) {
      const count = Math.min(PER_DOCUMENT, users - created);
      const first = created;
      created += count;
      const fields = Array.from(
        { length: count },
        (_, i) =>
          `a${i}:createUser(name:"user number ${first + i}${ending}",email:"user${first + i}@example.com"){id}`,
      );
      const reply = await fetch(`${portico.urls.graphql}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query: `mutation{${fields.join(' ')}}` }),
      });
      if ((await reply.text()).includes('"errors"')) throw new Error('users are not created');
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, create));
  return portico;
}

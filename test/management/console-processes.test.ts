import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutPostgres } from '../support/databases.ts';
import { startPortico } from '../support/portico-process.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

interface About {
  readonly process: { readonly pid: number };
  readonly processes: readonly { readonly name: string; readonly since: string }[];
}

test('each of two processes names itself and lists both', { skip: withoutPostgres ?? false }, async () => {
  await using server = await sharedPostgres();
  await using folder = await temporaryFolder();
  const env = { DATABASE_URL: await server.createDatabase() };
  await using service = await startTestService({ env });
  await service.listen();
  await using other = startPortico({ cwd: folder.path, env });
  await other.ready();

  const about = async (base: string | undefined) =>
    (await (await fetch(`${base}/actuator/console/api/about`)).json()) as About;
  const pids = (known: About) => known.processes.map(({ name }) => Number(name.split('/').at(-1))).sort();
  const both = [process.pid, Number(other.child.pid)].sort();
  for (const [base, pid] of [
    [service.urls.management, process.pid],
    [other.urls.management, other.child.pid],
  ] as const) {
    // The connection that the server knows a process by is opened beside the doors.
    const known = await waitFor('both processes', async () => {
      const answer = await about(base);
      return answer.processes.length === 2 && answer;
    });
    assert.equal(known.process.pid, pid);
    assert.deepEqual(pids(known), both);
  }
  other.child.kill('SIGTERM');
  await other.exited();
  await waitFor(
    'the other to be gone',
    async () => (await about(service.urls.management)).processes.length === 1,
  );
});

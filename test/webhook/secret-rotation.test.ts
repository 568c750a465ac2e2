import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

test('the secret of /webhook is exchanged without a gap, and a bad file changes nothing', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'secret');
  writeFileSync(file, 'first-secret\n');
  await using service = await startTestService({ env: { WEBHOOK_SECRET_FILE: file } });
  await service.listen();
  const post = async (token: string) => {
    const init = { method: 'POST', body: '{"event":"e"}', headers: { 'x-webhook-token': token } };
    return (await fetch(`${service.urls.webhook}/webhook`, init)).status;
  };
  assert.deepEqual([await post('first-secret'), await post('second-secret')], [200, 401]);

  writeFileSync(file, 'second-secret,first-secret\n');
  const statuses = new Set<number>();
  await waitFor('the second one to pass', async () => {
    // The sender has the first one all the while.
    statuses.add(await post('first-secret'));
    return (await post('second-secret')) === 200;
  });
  assert.deepEqual([...statuses], [200]);

  const said = (text: string) => service.log.entries.filter(({ msg }) => String(msg).startsWith(text)).length;
  writeFileSync(file, '');
  await waitFor('the empty file to be noticed', () => said('changed webhook secrets unusable') === 1);
  assert.deepEqual(
    [await post('first-secret'), await post('second-secret'), await post('')],
    [200, 200, 401],
  );

  writeFileSync(file, 'second-secret');
  await waitFor('the first one to be gone', async () => (await post('first-secret')) === 401);
  assert.equal(await post('second-secret'), 200);
  assert.equal(said('webhook secrets reloaded'), 2);
  assert.doesNotMatch(JSON.stringify(service.log.entries), /first-secret|second-secret/);
});

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../src/sql/open.ts';
import { newDelivery } from '../support/new-delivery.ts';
import { startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

/** Words that run a command with a resolver of its own and no network but loopback. */
const alone = (resolvConf: string) => [
  ...['unshare', '--map-root-user', '--mount', '--net', 'sh', '-c'],
  `ip link set lo up && mount --bind ${resolvConf} /etc/resolv.conf && exec "$@"`,
  'sh',
];

function withoutNamespaces(): string | false {
  const [command = '', ...words] = [...alone('/etc/hostname'), 'true'];
  return spawnSync(command, words).status === 0 ? false : 'needs Linux user namespaces (unshare) and ip';
}

/** Three DNS servers that receive questions and answer none. */
const RESOLV_CONF = 'nameserver 127.0.0.1\nnameserver 127.0.0.2\nnameserver 127.0.0.3\n';
const MODULE = `
import { createSocket } from 'node:dgram';
const server = createSocket('udp4');
server.on('message', () => console.log('{"msg":"asked"}')).bind(53).unref();
export default {
  interfaces: ['webhook'],
  webhook: { forward: { dead: 'http://dead.test/' } },
};
`;

/** The process must end before the watch over its stop ends it with exit code 1, ten seconds after the signal. */
test('a stop while the resolver does not answer ends in time, and the attempt does not count', {
  skip: withoutNamespaces(),
}, async () => {
  await using folder = await temporaryFolder();
  const resolvConf = join(folder.path, 'resolv.conf');
  await writeFile(resolvConf, RESOLV_CONF);
  await writeFile(join(folder.path, 'portico.config.mjs'), MODULE);
  const url = `sqlite:${join(folder.path, 'portico.db')}`;
  const delivery = newDelivery({ jobs: [{ target: 'forward:dead', orderKey: null }] });
  {
    await using database = await openDatabase(url);
    await database.inbox.append(delivery);
  }
  await using service = startPortico({ cwd: folder.path, wrapper: alone(resolvConf) });
  await waitFor('the name to be looked up', () => service.logs().some(({ msg }) => msg === 'asked'));
  service.child.kill('SIGTERM');
  assert.equal(await service.exited(), 0, service.stderr);
  await using database = await openDatabase(url);
  const found = await database.deliveries.find(delivery.id);
  const [job] = found?.jobs ?? [];
  assert.deepEqual([job?.status, job?.attempts, job?.error], ['pending', 0, null]);
});

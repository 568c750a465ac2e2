import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { loadConfig } from '../config/load.ts';
import { banner, commandToTry, doorAddresses } from './banner.ts';

const URLS = {
  graphql: 'http://127.0.0.1:4000',
  rest: 'http://127.0.0.1:8000',
  management: 'http://127.0.0.1:8080',
  webhook: 'http://127.0.0.1:3000',
};

async function addresses(urls: Partial<typeof URLS>, env: Readonly<Record<string, string>> = {}) {
  await using folder = await temporaryFolder();
  return doorAddresses(urls, await loadConfig({ argv: [], env, cwd: folder.path }));
}

test('each door has the address at which it can be used', async () => {
  assert.deepEqual(Object.fromEntries(await addresses(URLS)), {
    graphql: 'http://127.0.0.1:4000/graphql',
    rest: 'http://127.0.0.1:8000/users',
    management: 'http://127.0.0.1:8080/actuator',
    webhook: 'http://127.0.0.1:3000/webhook',
  });
});

test('paths that were configured are in the addresses, and closed doors are not', async () => {
  const env = { GRAPHQL_PATH: '/api/graph', MANAGEMENT_BASE_PATH: '/manage' };
  const { graphql, management } = URLS;
  assert.deepEqual(Object.fromEntries(await addresses({ graphql, management }, env)), {
    graphql: 'http://127.0.0.1:4000/api/graph',
    management: 'http://127.0.0.1:8080/manage',
  });
});

test('the command to try is for the first open door that needs no credentials', async () => {
  const { graphql, rest, management, webhook } = URLS;
  assert.equal(commandToTry(await addresses(URLS)), 'curl http://127.0.0.1:8000/users');
  assert.equal(commandToTry(await addresses({ rest, webhook })), 'curl http://127.0.0.1:8000/users');
  const query = "curl 'http://127.0.0.1:4000/graphql?query=%7Bhello%7D'";
  assert.equal(commandToTry(await addresses({ graphql, management, webhook })), query);
  assert.equal(commandToTry(await addresses({ management, webhook })), 'curl http://127.0.0.1:8080/livez');
  const base = await addresses({ management }, { MANAGEMENT_BASE_PATH: '/manage/deep' });
  assert.equal(commandToTry(base), 'curl http://127.0.0.1:8080/livez', 'outside the base path');
  assert.equal(
    commandToTry(await addresses({ webhook })),
    `curl -d '{"event":"new_commit","data":{}}' http://127.0.0.1:3000/webhook`,
  );
});

test('a door on a Unix socket is shown by its path', async () => {
  const rest = 'unix:/run/rest.sock';
  assert.deepEqual(Object.fromEntries(await addresses({ rest })), { rest });
  assert.equal(
    commandToTry(await addresses({ rest })),
    'curl --unix-socket /run/rest.sock http://localhost/users',
  );
  const { webhook } = URLS;
  assert.match(commandToTry(await addresses({ rest, webhook })), /http:\/\/127.0.0.1:3000\/webhook$/);
});

test('the banner names version, time, every open door and what to do next, in plain lines', async () => {
  const text = banner('1.2.3', 123.6, await addresses(URLS));
  const lines = text.split('\n');
  assert.equal(lines[0], 'Portico 1.2.3 is ready (124 ms)');
  for (const [title, address] of Object.entries({
    GraphQL: 'http://127.0.0.1:4000/graphql',
    REST: 'http://127.0.0.1:8000/users',
    Management: 'http://127.0.0.1:8080/actuator',
    Webhook: 'http://127.0.0.1:3000/webhook',
    'Try:': 'curl http://127.0.0.1:8000/users',
    'Stop:': 'Ctrl+C',
  })) {
    const line = lines.find((each) => each.trimStart().startsWith(title));
    assert.equal(line, `  ${title.padEnd(11)}${address}`, 'addresses stand below each other');
  }
  assert.match(text, /^[\n\x20-\x7e]+$/);
});

test('a closed door is not in the banner', async () => {
  const { rest } = URLS;
  assert.doesNotMatch(banner('1.2.3', 1, await addresses({ rest })), /GraphQL|Management|Webhook/);
});

test('an address that nobody can open is shown as one that can be opened', async () => {
  const urls = { rest: 'http://0.0.0.0:8000', management: 'http://[::]:8080' };
  const text = banner('1.2.3', 1, await addresses(urls, { MANAGEMENT_BASE_PATH: '/manage' }), {
    network: '10.0.0.7',
  });
  assert.match(text, /^ {2}REST {7}http:\/\/localhost:8000\/users$/m);
  assert.match(text, /^ {2}Management http:\/\/localhost:8080\/manage$/m);
  assert.match(text, /^ {2}Network {4}the same ports at 10\.0\.0\.7$/m);
  assert.match(text, /^ {2}Try: {7}curl http:\/\/localhost:8000\/users$/m);
  const loopback = banner('1.2.3', 1, await addresses(URLS), { network: '10.0.0.7' });
  assert.doesNotMatch(loopback, /Network/);
});

test('the console has a line of its own where it is served', async () => {
  const listening = await addresses(URLS);
  assert.doesNotMatch(banner('1.2.3', 1, listening), /Console/);
  const console = 'http://0.0.0.0:8080/actuator/console';
  assert.match(
    banner('1.2.3', 1, listening, { console }),
    /^ {2}Console {4}http:\/\/localhost:8080\/actuator\/console$/m,
  );
  const closed = 'Set it to open them';
  assert.match(banner('1.2.3', 1, listening, { console, closed }), /^ {2}Set it to open them$/m);
  assert.doesNotMatch(banner('1.2.3', 1, listening, { closed }), /open them/, 'without a console');
});

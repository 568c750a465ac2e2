import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startTestService } from '../support/service.ts';

const script = fileURLToPath(new URL('stranger.ts', import.meta.url));

/** Runs the script with these variables and nothing else; resolves to its exit code and its lines. */
function judge(env: Record<string, string>): Promise<{ code: number; lines: readonly string[] }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [script], { env, maxBuffer: 16 * 1024 * 1024 }, (error, stdout) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, lines: stdout.trim().split('\n') });
    });
  });
}

const failedMusts = (lines: readonly string[]) => lines.filter((line) => /^fail \S+ MUST /.test(line));

test('our own service passes as a stranger', async () => {
  await using service = await startTestService();
  await service.listen();
  const env: Record<string, string> = {};
  for (const [door, url] of Object.entries(service.urls)) {
    env[`PORTICO_CONTRACT_${door.toUpperCase()}_URL`] = url;
  }
  const { code, lines } = await judge(env);
  assert.deepEqual(failedMusts(lines), []);
  assert.equal(code, 0);
  for (const id of ['REST-01', 'GQL-01', 'MGMT-01', 'HOOK-01']) {
    assert.ok(
      lines.some((line) => line.startsWith(`pass ${id} MUST `)),
      id,
    );
  }
});

test('a server that knows nothing fails, and only at the door that was named', async () => {
  const server = createServer((_request, response) => response.writeHead(404).end('nothing')).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const { code, lines } = await judge({ PORTICO_CONTRACT_REST_URL: `http://127.0.0.1:${port}` });
    assert.equal(code, 1);
    assert.ok(failedMusts(lines).some((line) => line.startsWith('fail REST-01 ')));
    assert.ok(lines.some((line) => line.startsWith('skip HOOK-01 ')));
    assert.deepEqual(
      lines.filter((line) => /^(pass|fail) (GQL|MGMT|HOOK)-/.test(line) && !/^fail GQL-31 /.test(line)),
      [],
    );
  } finally {
    server.close();
  }
});

test('without a URL there is nothing to check: exit code 2', async () => {
  assert.equal((await judge({})).code, 2);
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { guideCommands } from '../support/guide-commands.ts';
import { startTestService } from '../support/service.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../docs/SECURITY.md'), 'utf8');

test('every command of the guide prints what it shows, in this order', async () => {
  const [, config = ''] = /```json\n(.*?)```/s.exec(GUIDE) ?? [];
  const [, started = ''] = /^(.*) npm start$/m.exec(GUIDE) ?? [];
  const env = Object.fromEntries(
    [...started.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]),
  );
  await using service = await startTestService({
    module: `export default ${config};`,
    env: { INTERFACES: 'rest,graphql', ...env },
  });
  await service.listen();
  const commands = guideCommands(GUIDE);
  assert.ok(commands.length > 3);
  for (const { command, output } of commands) {
    const here = command
      .replaceAll('http://127.0.0.1:8000', service.urls.rest ?? '')
      .replaceAll('http://127.0.0.1:4000', service.urls.graphql ?? '');
    const { stdout } = await promisify(execFile)('sh', ['-c', here]);
    assert.equal(stdout.replaceAll('\r', '').trimEnd(), output, command);
  }
});

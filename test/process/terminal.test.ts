import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { MAIN } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip =
  spawnSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' }).status === 0
    ? false
    : 'needs script of util-linux';

const FREE = { GRAPHQL_PORT: '0', REST_PORT: '0', MANAGEMENT_PORT: '0', PORT: '0', SHUTDOWN_LINGER: '0' };

/** Runs `portico` on a terminal of its own until it ends; `onText` gets the process and what it has shown so far. */
async function onTerminal(
  cwd: string,
  command: string,
  env: Readonly<Record<string, string>> = {},
  onText: (interrupt: () => void, text: string) => void = () => {},
): Promise<string> {
  const child = spawn('script', ['-qec', `'${process.execPath}' '${MAIN}' ${command}`, '/dev/null'], {
    cwd,
    env: { ...CHILD_ENVIRONMENT, TERM: 'xterm', ...FREE, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    // Ctrl+C, as a keyboard sends it.
    onText(() => child.stdin.write('\x03'), text);
  });
  await once(child, 'close');
  return text.replaceAll('\r\n', '\n');
}

/** Starts the service and stops it by Ctrl+C once its banner is there. */
function serveOnTerminal(
  cwd: string,
  command: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  let interrupted = false;
  return onTerminal(cwd, command, env, (interrupt, text) => {
    if (interrupted || !text.includes('Stop:')) return;
    interrupted = true;
    interrupt();
  });
}

const ESCAPE = '\x1b';

test('on a terminal the banner stands alone, then each entry has a line', { skip }, async () => {
  await using folder = await temporaryFolder();
  const text = await serveOnTerminal(folder.path, 'serve --host 0.0.0.0', { NO_COLOR: '1' });
  const [before = '', after = ''] = text.split('  Stop:      Ctrl+C\n\n');
  assert.match(before, /^\s*Portico \S+ is ready \(\d+ ms\)\n\n/);
  assert.match(before, /^ {2}REST {7}http:\/\/localhost:\d+\/users$/m);
  assert.doesNotMatch(before, /door listens|0\.0\.0\.0/);
  const entries = after.split('\n').filter((line) => line !== '' && line !== '^C');
  const [warning = '', ...rest] = entries.map((line) => line.replace(/^(?:\^C)?\[[\d:.]{12}\] /, ''));
  assert.match(
    warning,
    /^WARN: doors reachable without credentials.* \{"host":"0\.0\.0\.0","doors":\[.*\],"secure":\{.*\}\}$/,
  );
  assert.deepEqual(rest, ['INFO: stopping {"signal":"SIGINT"}', 'INFO: stopped']);
});

test('NO_COLOR and FORCE_COLOR hold for banner, log, help and tables', { skip }, async () => {
  await using folder = await temporaryFolder();
  for (const [env, coloured] of [
    [{}, true],
    [{ NO_COLOR: '1' }, false],
    [{ FORCE_COLOR: '0' }, false],
  ] as const) {
    const service = await serveOnTerminal(folder.path, 'serve', env);
    assert.equal(service.includes(`${ESCAPE}[1mPortico`), coloured, 'banner');
    assert.equal(service.includes(`${ESCAPE}[32mINFO`), coloured, 'log');
    const help = await onTerminal(folder.path, 'help send', env);
    assert.equal(help.includes(`${ESCAPE}[1mUsage: portico send`), coloured, 'help');
    if (!coloured) assert.ok(!(service + help).includes(ESCAPE));
  }
  const piped = (env: Readonly<Record<string, string>>) =>
    spawnSync(process.execPath, [MAIN, 'help'], { cwd: folder.path, encoding: 'utf8', env }).stdout;
  assert.ok(!piped({}).includes(ESCAPE));
  assert.ok(piped({ FORCE_COLOR: '1' }).includes(ESCAPE));
});

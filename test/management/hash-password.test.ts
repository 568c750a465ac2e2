import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { parsePasswordHash, verifyPassword } from '../../src/core/passwords.ts';
import { MAIN, startPortico } from '../support/portico-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { waitFor } from '../support/wait-for.ts';

function hash(input: string | Uint8Array, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'hash-password', ...args], { input });
  return { status, stdout: String(stdout), stderr: String(stderr) };
}

const isHashOf = (text: string, password: string) =>
  verifyPassword(password, parsePasswordHash(text.trimEnd()));

test('standard input is hashed, less one newline at its end', async () => {
  for (const [input, password, algorithm] of [
    ['pässwörd 😀', 'pässwörd 😀', 'scrypt'],
    ['secret\n', 'secret', 'argon2id'],
    ['secret \r\n', 'secret ', 'argon2id'],
  ] as const) {
    const { status, stdout, stderr } = hash(input, ...(algorithm === 'scrypt' ? [] : [`--${algorithm}`]));
    assert.equal(status, 0);
    assert.equal(stderr, '');
    assert.match(stdout, algorithm === 'scrypt' ? /^\$scrypt\$[^\n]+\n$/ : /^\$argon2id\$v=19\$[^\n]+\n$/);
    assert.ok(await isHashOf(stdout, password), input);
  }
});

test('what cannot be hashed is explained, with exit code 2', () => {
  for (const [input, args, message] of [
    ['', [], 'A password has at least one character, and no control characters'],
    ['a\nb', [], 'A password has at least one character, and no control characters'],
    [Uint8Array.of(0xff), [], 'Standard input is not UTF-8 text'],
    [
      'a',
      ['--argon'],
      '"--argon" is not an option of hash-password; did you mean --argon2id?\nSee "portico help hash-password".',
    ],
    [
      'a',
      ['hunter2'],
      'A password must not be an argument, which other users can see; type it when asked, or pipe it to standard input',
    ],
  ] as const) {
    assert.deepEqual(hash(input, ...args), { status: 2, stdout: '', stderr: `portico: ${message}\n` });
  }
});

const noTerminal =
  spawnSync('script', ['--version']).status !== 0 && 'needs script (apt-get install bsdutils)';

/** Types answers into a terminal, each after its question was asked; resolves to what stood there in the end. */
async function type(...answers: readonly string[]): Promise<{ screen: string; code: number }> {
  const command = `'${process.execPath}' '${MAIN}' hash-password`;
  const child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'ignore'] });
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
  });
  const closed = once(child, 'close');
  for (const [i, answer] of answers.entries()) {
    const question = i === 0 ? 'Password: ' : 'Again: ';
    await waitFor(`the question "${question}"`, () => screen.includes(question));
    child.stdin.write(answer);
  }
  const [code] = await closed;
  return { screen, code };
}

test('a password that is typed is not shown', { skip: noTerminal }, async () => {
  const { screen, code } = await type('secrXYé\x7f\x7f\x7fet\r', 'wrong\x15secret\n');
  assert.equal(code, 0);
  const [text = ''] = /\$scrypt\$\S+/.exec(screen) ?? [];
  const shown = screen.replace(text, '#').replaceAll('\r', '').split('\n');
  assert.deepEqual(shown.slice(0, 3), ['Password: ', 'Again: ', '#']);
  assert.ok(await isHashOf(text, 'secret'));
});

test('both can be pasted at once', { skip: noTerminal }, async () => {
  const { screen } = await type('one two\rone two\r');
  const [text = ''] = /\$scrypt\$\S+/.exec(screen) ?? [];
  assert.ok(await isHashOf(text, 'one two'));
});

test('two different ones, or none, are no password', { skip: noTerminal }, async () => {
  const different = await type('one\r', 'two\r');
  assert.equal(different.code, 2);
  assert.match(different.screen, /The passwords differ/);
  for (const end of ['\x03', '\x04']) {
    const { screen, code } = await type(`one${end}`);
    assert.equal(code, 1);
    assert.doesNotMatch(screen, /\$|one/);
  }
});

test('a hash in the environment opens the door for its password, and for nothing else', async () => {
  await using folder = await temporaryFolder();
  const stored = hash('right').stdout.trimEnd();
  const env = { MANAGEMENT_USER: 'ops', MANAGEMENT_PASSWORD: stored, INTERFACES: 'management' };
  await using portico = startPortico({ cwd: folder.path, env });
  await portico.ready();
  const status = async (password: string) => {
    const authorization = `Basic ${Buffer.from(`ops:${password}`).toString('base64')}`;
    const reply = await fetch(`${portico.urls.management}/actuator/info`, { headers: { authorization } });
    return reply.status;
  };
  assert.deepEqual(await Promise.all(['right', 'wrong', stored, 'right'].map(status)), [200, 401, 401, 200]);
});

test('a hash that cannot be checked stops the start', async () => {
  await using folder = await temporaryFolder();
  const env = { MANAGEMENT_USER: 'ops', MANAGEMENT_PASSWORD: '$scrypt$ln=30,r=8,p=1$c29tZXNhbHQ$AAAA' };
  await using portico = startPortico({ cwd: folder.path, env });
  assert.equal(await portico.exited(), 2);
  assert.match(
    portico.stderr,
    /MANAGEMENT_PASSWORD must be a password .* or a whole \$scrypt\$ or \$argon2id\$ hash/,
  );
  assert.doesNotMatch(portico.stderr, /ln=30|c29t/);
});

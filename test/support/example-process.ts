import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CHILD_ENVIRONMENT } from './child-environment.ts';
import { waitFor } from './wait-for.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

/** An example that runs as a process of its own, on a free port. */
export interface Example extends AsyncDisposable {
  readonly origin: string;
  /** How often it has written a text. */
  count(text: string): number;
  /** Resolves to its exit code; null when the signal ended it. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

interface ExampleOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the server of `examples/<name>`. */
export async function startExample(name: string, { cwd, env }: ExampleOptions = {}): Promise<Example> {
  const child = spawn(process.execPath, [join(EXAMPLES, name, 'server.ts')], {
    cwd,
    env: { ...CHILD_ENVIRONMENT, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const origin = await waitFor(
    'the example to listen',
    () => {
      assert.equal(child.exitCode, null, output);
      return /Server listening at (http:\/\/[\w.:]+)/.exec(output)?.[1];
    },
    20_000,
  );
  return {
    origin,
    count: (text) => output.split(text).length - 1,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      const [code] = await closed;
      return code as number | null;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

export function readmeOf(name: string): string {
  return readFileSync(join(EXAMPLES, name, 'README.md'), 'utf8');
}

/**
 * Runs every curl that the README of an example shows, with the addresses that it shows replaced by those that listen;
 * checks that there are so many, and what comes back.
 */
export async function checkShownRequests(
  name: string,
  origins: Readonly<Record<string, string>>,
  count: number,
): Promise<void> {
  const shown = [...readmeOf(name).matchAll(/^\$ (curl .+)\n(.+)$/gm)];
  assert.equal(shown.length, count);
  for (const [, command = '', answer] of shown) {
    const here = Object.entries(origins).reduce(
      (text, [shown, there]) => text.replace(shown, there),
      command,
    );
    assert.equal((await promisify(execFile)('sh', ['-c', here])).stdout, answer, command);
  }
}

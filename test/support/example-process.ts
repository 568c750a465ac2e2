import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { CHILD_ENVIRONMENT } from './child-environment.ts';
import { runShown } from './run-shown.ts';
import type { ShownCommand } from './shown-commands.ts';
import { waitFor } from './wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');

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

/** Starts the server of an example by the command of its README, `npm exec -- node <file>`. */
export async function startExample(
  { command }: ShownCommand,
  { cwd, env }: ExampleOptions = {},
): Promise<Example> {
  const child = spawn(process.execPath, [join(ROOT, command.split(' ').at(-1) ?? '')], {
    cwd,
    env: { ...CHILD_ENVIRONMENT, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const origin = await waitFor('the example to listen', () => {
    assert.equal(child.exitCode, null, output);
    return /Server listening at (http:\/\/[\w.:]+)/.exec(output)?.[1];
  });
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

/**
 * Runs every curl that the README of an example shows with its output, with the addresses that it shows replaced by those
 * that listen; checks what comes back.
 */
export async function checkShownRequests(
  requests: readonly ShownCommand[],
  urls: Readonly<Record<string, string>>,
): Promise<void> {
  for (const request of requests) {
    const { stdout } = await runShown(request, { cwd: ROOT, urls });
    assert.equal(stdout.trimEnd(), request.output, request.command);
  }
}

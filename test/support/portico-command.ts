import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { CHILD_ENVIRONMENT } from './child-environment.ts';
import { MAIN } from './portico-process.ts';
import type { CommandOptions, CommandResult } from './run-command.ts';

/** Runs a `portico` command to its end, in a process of its own. */
export async function runPortico(
  args: readonly string[],
  { cwd, env = {}, input = '' }: CommandOptions,
): Promise<CommandResult> {
  const child = spawn(process.execPath, [MAIN, ...args], { cwd, env: { ...CHILD_ENVIRONMENT, ...env } });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  // A command that reads nothing may be gone before it is written to.
  child.stdin.on('error', () => {}).end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

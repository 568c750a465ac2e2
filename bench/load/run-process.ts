import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Runs a program and resolves to its standard output; `input` becomes its standard input. It is killed when
 * this process exits.
 */
export async function runProcess(
  command: readonly string[],
  { input = '', cwd }: { readonly input?: string; readonly cwd?: string } = {},
): Promise<string> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: 'pipe', cwd });
  const kill = () => child.kill('SIGKILL');
  // First, so that the program has ended before its files are removed.
  process.prependOnceListener('exit', kill);
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  process.off('exit', kill);
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${errors || output}`);
  return output;
}

import { Readable, Writable } from 'node:stream';
import { main } from '../../src/main.ts';
import { withLimits } from './limits.ts';
import { CHILD_ENVIRONMENT } from './portico-process.ts';

export interface CommandOptions {
  /** The working folder: where the database and the configuration module are. */
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What it gets on standard input; default nothing. */
  readonly input?: string;
}

/** How a `portico` command ended. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a `portico` command to its end in the process of the test, which takes a tenth of the time and sends it no signals. `serve` and `health`
 * need a process of their own. So do commands that run at the same time, because a process has one working folder, and
 * commands after a change of the configuration module, which a process loads once.
 */
export function runCommand(args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  const result = last.then(() => runHere(args, options));
  last = result.catch(() => {});
  return result;
}

async function runHere(
  args: readonly string[],
  { cwd, env = {}, input = '' }: CommandOptions,
): Promise<CommandResult> {
  const stdout = new Collector();
  const stderr = new Collector();
  const before = process.cwd();
  process.chdir(cwd);
  try {
    const code = await main(args, {
      stdin: Readable.from(input === '' ? [] : [Buffer.from(input)]),
      stdout,
      stderr,
      env: { ...CHILD_ENVIRONMENT, ...withLimits(env, cwd) },
      on: () => {},
      off: () => {},
      exit: (exitCode) => {
        throw new Error(`the command ended its process with ${exitCode}`);
      },
    });
    return { code, stdout: stdout.text, stderr: stderr.text };
  } finally {
    process.chdir(before);
  }
}

/** Keeps what is written to it. */
class Collector extends Writable {
  readonly #chunks: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}

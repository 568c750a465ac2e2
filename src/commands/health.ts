import { isExpected } from '../core/expected-error.ts';
import { type CommandArguments, readArguments } from './argv/command-arguments.ts';
import { askConnection, askReadiness } from './health/ask.ts';
import { givenTarget, targetsOf } from './health/targets.ts';
import { usages } from './help/usages.ts';
import { note, print } from './terminal/output.ts';

/** In milliseconds. */
const TIMEOUT = 5_000;

/**
 * `portico health`. Ends the process with 0 when the service is ready and with 1 otherwise, because code of the
 * configuration module may keep it running.
 */
export async function healthCommand(argv: readonly string[]): Promise<never> {
  try {
    const reason = await ask(readArguments(usages.health, argv));
    if (reason === undefined) await print('ready\n');
    else note(`portico: not ready: ${reason}`);
    process.exit(reason === undefined ? 0 : 1);
  } catch (error) {
    if (!isExpected(error)) throw error;
    note(`portico: ${error.message}`);
    process.exit(1);
  }
}

/** Why the service is not ready; undefined when it is. Rejects with UsageError and ConfigError. */
async function ask(args: CommandArguments): Promise<string | undefined> {
  const limit = Number(args.value('--timeout') ?? TIMEOUT);
  if (!Number.isInteger(limit) || limit < 1 || limit > 600_000) {
    throw args.misuse('--timeout must be a whole number of milliseconds from 1 to 600000');
  }
  const limited = new AbortController();
  const { promise: late, resolve } = Promise.withResolvers<string>();
  // Counts what has passed since the start of the process. A module may never finish loading.
  const end = () => {
    resolve(`no answer within ${limit} ms`);
    limited.abort();
  };
  setTimeout(end, limit - performance.now());
  return Promise.race([late, reasonOf(args, limited.signal)]);
}

async function reasonOf(args: CommandArguments, signal: AbortSignal): Promise<string | undefined> {
  const url = args.value('--url');
  const asked = url === undefined ? targetsOf(await args.configuration()) : givenTarget(url);
  if ('problem' in asked) return asked.problem;
  if ('readiness' in asked) return askReadiness(asked.readiness, signal);
  const reasons = await Promise.all(asked.doors.map((door) => askConnection(door, signal)));
  return reasons.find((reason) => reason !== undefined);
}

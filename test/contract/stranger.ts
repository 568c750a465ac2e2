import { checks } from './catalogue.ts';
import type { Check, Door, DoorName, Subject } from './check.ts';
import { socketDoor } from './doors.ts';

/**
 * Runs the checks that need nothing but HTTP against services that somebody else has started:
 *
 *   PORTICO_CONTRACT_REST_URL=http://127.0.0.1:8000 node test/contract/stranger.ts
 *
 * with _GRAPHQL_, _REST_, _MANAGEMENT_ and _WEBHOOK_ for the doors, as many as there are. One line per check.
 * It creates, changes and deletes users. Exit code 1 when a MUST fails, 2 when no URL is given.
 */

class DoorMissingError extends Error {
  override readonly name = 'DoorMissingError';
  readonly code = 'DOOR_MISSING';
}

function door(name: DoorName): Door {
  const url = process.env[`PORTICO_CONTRACT_${name.toUpperCase()}_URL`];
  if (url !== undefined) return socketDoor(() => url);
  return {
    url: undefined,
    send: () => Promise.reject(new DoorMissingError(`no URL of the ${name} interface is given`)),
  };
}

const subject: Subject = {
  graphql: door('graphql'),
  rest: door('rest'),
  management: door('management'),
  webhook: door('webhook'),
  logs: () => [],
};
const given = [subject.graphql, subject.rest, subject.management, subject.webhook].filter(({ url }) => url);

function obstacle({ needs = {} }: Check): string | undefined {
  if (needs.env !== undefined || needs.module !== undefined) return 'needs a configuration of its own';
  if (needs.place !== undefined) return 'needs a fresh service';
  if (needs.restart) return 'needs a restart';
  if (needs.logs) return 'needs the log';
  if (needs.socket && given.length < 4) return 'needs all four interfaces';
  return undefined;
}

async function verdict(check: Check): Promise<'pass' | 'fail' | 'skip'> {
  const reason = obstacle(check);
  if (reason !== undefined) return say('skip', check, reason);
  try {
    await check.run(subject);
    return say('pass', check);
  } catch (error) {
    if (error instanceof DoorMissingError) return say('skip', check, error.message);
    return say('fail', check, error instanceof Error ? error.message : String(error));
  }
}

function say<V extends string>(word: V, { id, level, heading, title }: Check, reason = ''): V {
  const [first = ''] = reason.split('\n');
  process.stdout.write(`${word} ${id} ${level} ${title} (${heading})${first === '' ? '' : ` - ${first}`}\n`);
  return word;
}

if (given.length === 0) {
  process.stderr.write(
    'Set PORTICO_CONTRACT_REST_URL or another of the four URLs to the service to check.\n',
  );
  process.exitCode = 2;
} else {
  const counts = { pass: 0, fail: 0, skip: 0 };
  let broken = 0;
  for (const check of checks) {
    const word = await verdict(check);
    counts[word] += 1;
    if (word === 'fail' && check.level === 'MUST') broken += 1;
  }
  process.stdout.write(
    `${counts.pass} passed, ${counts.fail} failed (${broken} MUST), ${counts.skip} skipped\n`,
  );
  process.exitCode = broken === 0 ? 0 : 1;
}

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { CHILD_ENVIRONMENT } from './child-environment.ts';
import { MAIN } from './portico-process.ts';
import type { ShownCommand } from './shown-commands.ts';
import { waitFor } from './wait-for.ts';

/** Where a command of a document runs, and what takes the place of what it names. */
export interface Place {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The addresses of the doors, for those that the document shows. */
  readonly urls?: Readonly<Record<string, string>>;
  /** Paths, hosts and ids of the document, with those of the test. */
  readonly names?: Readonly<Record<string, string>>;
  /** What it gets on standard input; default nothing. */
  readonly input?: string;
}

/** How a command ended. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const PORTS = { graphql: 4000, rest: 8000, management: 8080, webhook: 3000 } as const;

/** `portico` is that of the sources, however a document calls it; without further words it is the service. */
const CALLS = `portico() { '${process.execPath}' '${MAIN}' "$@"; }
npx() { shift; portico "$@"; }
npm() {
  while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
  [ $# -gt 0 ] && shift
  if [ "$1" = portico ]; then shift; fi
  portico "$@"
}
`;

/** The text of a command with the addresses and names of the test in the place of those of the document. */
export function atTest({ command }: ShownCommand, { urls = {}, names = {} }: Omit<Place, 'cwd'>): string {
  let here = command;
  for (const [shown, actual] of Object.entries(names)) here = here.replaceAll(shown, actual);
  for (const [door, port] of Object.entries(PORTS)) {
    const url = urls[door];
    if (url !== undefined) {
      here = here.replaceAll(new RegExp(`(?:https?://)?(?:127\\.0\\.0\\.1|localhost):${port}\\b`, 'g'), url);
    }
  }
  return here;
}

/** Starts a command of a document in a shell of its own session, so that nothing asks at a terminal. */
function startShown(shown: ShownCommand, place: Place): ChildProcessWithoutNullStreams {
  return spawn('sh', ['-c', `${CALLS}${atTest(shown, place)}`], {
    cwd: place.cwd,
    env: { ...CHILD_ENVIRONMENT, ...place.env },
    detached: true,
  });
}

/** Runs a command of a document to its end. */
export async function runShown(shown: ShownCommand, place: Place): Promise<Ended> {
  const child = startShown(shown, place);
  const { stdin, stdout, stderr } = child;
  // A command that reads nothing may be gone before it is written to.
  stdin.on('error', () => {}).end(place.input ?? '');
  const [said, complained, [code]] = await Promise.all([text(stdout), text(stderr), once(child, 'close')]);
  return { code: code as number | null, stdout: said, stderr: complained };
}

/** Runs a command of a document that does not end by itself, until `done` holds; resolves to what it said. */
export async function runShownUntil(
  shown: ShownCommand,
  place: Place,
  done: (said: string) => boolean | Promise<boolean>,
): Promise<string> {
  const child = startShown(shown, place);
  const closed = once(child, 'close');
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => {
      said += part;
    });
  }
  try {
    const check = async () => {
      const isDone = await done(said);
      if (!isDone && child.exitCode !== null) throw new Error(`${shown.command} ended: ${said}`);
      return isDone;
    };
    await waitFor(shown.command, check);
  } finally {
    // The shell and what it has started are a group of their own.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGINT');
  }
  await closed;
  return said;
}

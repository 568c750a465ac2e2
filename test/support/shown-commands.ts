import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { blocks } from '../documents/documents.ts';
import { shellCommands, shellStatements } from '../documents/shell.ts';
import { CHILD_ENVIRONMENT, MAIN } from './portico-process.ts';
import { waitFor } from './wait-for.ts';

/** A command of a document, as a reader types it. */
export interface ShownCommand {
  readonly command: string;
  /** What the document says that it prints; undefined in a block that shows no output. */
  readonly output?: string;
  /** The document, and the line where the block begins. */
  readonly where: string;
  readonly path: string;
}

/** Every command of every document, in their order. */
export function allShownCommands(): readonly ShownCommand[] {
  return blocks('sh', 'console').flatMap(({ path, line, language, text }) => {
    const place = { path, where: `${path}:${line}` };
    return language === 'sh'
      ? shellStatements(text).map((command) => ({ command, ...place }))
      : consoleCommands(text).map((each) => ({ ...each, ...place }));
  });
}

/** The commands behind the prompts of a block, with what stands below them. */
function consoleCommands(text: string): readonly { readonly command: string; readonly output: string }[] {
  const examples = text.split(/^\$ /m).slice(1);
  return examples.map((example) => {
    const [command = '', ...lines] = example.trimEnd().split('\n');
    return { command, output: lines.join('\n') };
  });
}

/**
 * The commands of a document that a pattern fits; all without one. A test that calls this runs them all:
 * test/documents/commands.test.ts reads the calls, so both arguments are literals, and wants one for every command.
 */
export function shownCommands(path: string, pattern = /(?:)/): readonly ShownCommand[] {
  const found = allShownCommands().filter((each) => each.path === path && pattern.test(each.command));
  assert.ok(found.length > 0, `${path} shows no ${pattern}`);
  return found;
}

/** The one command of a document that a pattern fits. */
export function shownCommand(path: string, pattern: RegExp): ShownCommand {
  const [found, another] = shownCommands(path, pattern);
  assert.ok(found !== undefined && another === undefined, `${path} shows more than one ${pattern}`);
  return found;
}

/** The settings that a command such as `REST_PORT=9000 npm start` gives the service. */
export function settingsOf(
  { command }: ShownCommand,
  /** Paths and hosts of the document, with those of the test. */
  names: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const settings = Object.entries(shellCommands(command)[0]?.env ?? {});
  return Object.fromEntries(
    settings.map(([name, value]) => [
      name,
      Object.entries(names).reduce((text, [shown, actual]) => text.replaceAll(shown, actual), value),
    ]),
  );
}

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

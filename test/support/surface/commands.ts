import type { CommandResult } from '../run-command.ts';

type Run = (args: readonly string[]) => Promise<CommandResult>;

/** Other ways to ask for help and version, and calls that are wrong. */
const CALLS = [
  ['-h'],
  ['--help'],
  ['--version'],
  ['-V'],
  ['-v'],
  ['nonsense'],
  ['serve', '--nonsense'],
  ['serve', '--no-migrate=x'],
];

/** Every command of the help with its own help, and how some calls are answered. `run` calls the program. */
export async function describeCommands(run: Run): Promise<string> {
  const { stdout: general } = await run(['help']);
  const { stdout: version } = await run(['version']);
  const [, list = ''] = /^Usage: .*\n((?: {2}.*\n)+)/.exec(general) ?? [];
  const names = Array.from(list.matchAll(/^ {2}([\w-]+) /gm), ([, name = '']) => name);
  if (names.length < 2) throw new Error(`no commands are found in the help:\n${general}`);
  const helps = await inPairs(names, async (name) => {
    const { stdout } = await run(['help', name]);
    const own = name === 'serve' ? withoutOptions(stdout) : stdout.trimEnd();
    return `$ portico help ${name}\n${stdout === general ? '(that of portico help)' : own}`;
  });
  const calls = await inPairs(CALLS, async (args) => {
    const { code, stdout, stderr } = await run(args);
    const known = new Map([
      [general, '(that of portico help)'],
      [version, '(that of portico version)'],
    ]);
    const output = known.get(stdout) ?? `${stdout}${stderr}`.trimEnd();
    return `$ portico ${args.join(' ')}\n${output}\n(exit code ${code})`;
  });
  return [`$ portico help\n${general.trimEnd()}`, ...helps, ...calls].join('\n\n');
}

/** The help of `serve` without the options of the configuration, which settings.txt has. */
function withoutOptions(help: string): string {
  const sections = help.trimEnd().split('\n\n');
  return sections
    .map((section) =>
      /\n {2}--/.test(section) ? `${section.split('\n')[0]}\n  (see settings.txt)` : section,
    )
    .join('\n\n');
}

/** Two at a time: each is a process. */
async function inPairs<T>(
  items: readonly T[],
  ask: (item: T) => Promise<string>,
): Promise<readonly string[]> {
  const results: string[] = [];
  for (let at = 0; at < items.length; at += 2) {
    results.push(...(await Promise.all(items.slice(at, at + 2).map(ask))));
  }
  return results;
}

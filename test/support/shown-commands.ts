import assert from 'node:assert/strict';
import { blocks } from '../documents/documents.ts';
import { shellCommands, shellStatements } from '../documents/shell.ts';

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

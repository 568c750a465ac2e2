/** One command of a shell: what is set for it, and its words. */
export interface ShellCommand {
  readonly text: string;
  readonly env: Readonly<Record<string, string>>;
  readonly words: readonly string[];
}

/**
 * The commands of a shell script as documents show them: one in a line, or in several with quotes or `<<'END'`; joined by
 * `&&` or `|`. Comments, variables that are exported and prompts are left out.
 */
export function shellCommands(script: string): readonly ShellCommand[] {
  return shellStatements(script).flatMap((text) => split(text));
}

/** The script as what a shell runs at once: a line, or several that belong together; comments of their own left out. */
export function shellStatements(script: string): readonly string[] {
  return statements(script).filter((text) => !text.startsWith('#'));
}

/** Lines that belong together as one. */
function statements(script: string): readonly string[] {
  const all: string[] = [];
  let open = '';
  let end: string | undefined;
  for (const line of script.split('\n')) {
    open += open === '' ? line : `\n${line}`;
    if (end !== undefined) {
      if (line !== end) continue;
      end = undefined;
    } else {
      end = /<<'(\w+)'/.exec(line)?.[1];
      if (end !== undefined || isOpen(open)) continue;
    }
    if (open.trim() !== '') all.push(open.trim());
    open = '';
  }
  return open.trim() === '' ? all : [...all, open.trim()];
}

function isOpen(text: string): boolean {
  const bare = text.replaceAll(/'[^']*'|"(?:\\.|[^"\\])*"/gs, '').replaceAll(/(?:^|\s)#.*$/gm, '');
  return /['"]/.test(bare) || bare.endsWith('\\');
}

const WORD = /(?:[^\s'"\\]|\\.|'[^']*'|"(?:\\.|[^"\\])*")+/gs;

function split(text: string): readonly ShellCommand[] {
  const [first = ''] = text.split(/\n?.*<<'\w+'/);
  const line = (text.includes("<<'") ? first + (text.split('\n')[0] ?? '') : text).replaceAll('\\\n', ' ');
  const commands: string[][] = [[]];
  for (const [word] of line.matchAll(WORD)) {
    if (word.startsWith('#')) break;
    if (word === '&&' || word === '|') commands.push([]);
    else commands.at(-1)?.push(unquoted(word));
  }
  return commands.map((words) => {
    const from = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
    const set = words.slice(0, from === -1 ? words.length : from);
    const env = set.map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]);
    return { text, env: Object.fromEntries(env), words: words.slice(set.length) };
  });
}

function unquoted(word: string): string {
  return word.replaceAll(/'([^']*)'|"((?:\\.|[^"\\])*)"/gs, (_all, single, double) => single ?? double);
}

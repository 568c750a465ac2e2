import { doors } from '../config/options/door.ts';
import { flagOf, formatDefault } from '../config/options/option.ts';
import { moduleOption, type OptionKey, optionKeys, optionOf } from '../config/options/options.ts';
import { commands } from './command-line.ts';

const titles = { graphql: 'GraphQL', rest: 'REST', management: 'Management', webhook: 'Webhooks' } as const;

interface Entry {
  readonly flag: string;
  readonly env: string;
  /** The description, with the default behind it. */
  readonly text: string;
}

/** The text of `portico help` for a terminal of so many columns; between 72 and 100 of them are used. */
export function renderHelp(width: number): string {
  const columns = Math.min(100, Math.max(72, Math.floor(width) || 80));
  const general = optionKeys.filter((key) => doors.every((door) => !key.startsWith(`${door}.`)));
  const groups = [
    { title: 'All doors', entries: [moduleEntry, ...general.map(entryOf)] },
    ...doors.map((door) => ({
      title: titles[door],
      entries: optionKeys.filter((key) => key.startsWith(`${door}.`)).map(entryOf),
    })),
  ];
  const flagWidth = Math.min(
    longestFlag,
    Math.max(...groups.flatMap(({ entries }) => entries.map(({ flag }) => flag.length))),
  );
  const nameWidth = Math.max(...commands.map(({ name }) => name.length));

  const lines = ['Usage: portico [command] [options]', '', 'Commands'];
  for (const { name, summary } of commands)
    lines.push(...hang(`  ${name.padEnd(nameWidth)}  `, summary, columns));
  for (const { title, entries } of groups) {
    lines.push('', title);
    for (const entry of entries) {
      const flag = `  ${entry.flag.padEnd(flagWidth)}  `;
      // A variable that the flag leaves no room for stands on the next line, in the column of the others.
      if (entry.flag.length <= flagWidth) lines.push(`${flag}${entry.env}`);
      else lines.push(flag.trimEnd(), `${' '.repeat(flagWidth + 4)}${entry.env}`);
      lines.push(...hang('      ', entry.text, columns));
    }
  }
  lines.push('', ...closing.flatMap((text) => hang('', text, columns)));
  return `${lines.join('\n')}\n`;
}

/** A longer flag has a line of its own: 72 columns are for the longest variable too. */
const longestFlag = 32;

const closing = [
  'Behind every flag stands its environment variable. A flag wins over the environment, the environment over the ' +
    'configuration module, the module over the default.',
  '[_FILE]: the variable with _FILE behind its name may name a file that holds the value.',
];

const moduleEntry: Entry = {
  flag: `${moduleOption.flag} <file>`,
  env: moduleOption.env,
  text: `${moduleOption.description} [default: ${moduleOption.default}]`,
};

function entryOf(key: OptionKey): Entry {
  const option = optionOf(key);
  const given = formatDefault(option);
  return {
    flag: `${flagOf(key)} <${option.kind.placeholder}>`,
    env: option.secret ? `${option.env}[_FILE]` : option.env,
    text: `${option.description} [${option.default === undefined ? given : `default: ${given}`}]`,
  };
}

/** Breaks a text at spaces; the lines after the first are indented as far as `lead` is long. */
export function hang(lead: string, text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = lead;
  for (const word of text.split(' ')) {
    const joined = line.length === lead.length ? `${line}${word}` : `${line} ${word}`;
    if (joined.length <= columns || line.length === lead.length) {
      line = joined;
    } else {
      lines.push(line);
      line = `${' '.repeat(lead.length)}${word}`;
    }
  }
  return [...lines, line];
}

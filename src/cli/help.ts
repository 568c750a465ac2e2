import { flagOf, formatDefault, groups } from '../config/options/option.ts';
import { doors, moduleOption, type OptionKey, optionKeys, optionOf } from '../config/options/options.ts';
import { type Paint, paintFor, plainly } from '../core/text.ts';
import { renamedEvents } from '../signatures/sources.ts';
import type { CommandEntry, CommandIo, CommandUsage } from './command.ts';
import { printPainted } from './terminal.ts';

/** `portico help [command]` and `--help`. `words` name a command that exists, or are empty. */
export async function showHelp(
  commands: readonly CommandEntry[],
  words: readonly string[],
  io: CommandIo,
): Promise<number> {
  const { stdout, env } = io;
  const sections = await sectionsOf(commands, words);
  await printPainted(io, renderHelp(sections, stdout.columns ?? 100, paintFor(stdout, env)));
  return 0;
}

/** The sections of `portico help`, or of the help on the command or subcommand in `words`. */
async function sectionsOf(
  commands: readonly CommandEntry[],
  [name, part]: readonly string[],
): Promise<readonly HelpSection[]> {
  if (name === 'serve') return serviceHelp();
  const { load, parts = {} } = commands.find((command) => command.name === name) ?? {};
  const exact = parts[part ?? ''];
  const loads = load !== undefined ? [load] : exact !== undefined ? [exact] : Object.values(parts);
  if (loads.length === 0) return generalHelp(commands);
  const usages = (await Promise.all(loads.map((load) => load()))).map(({ usage }) => usage);
  const configured = usages.some(({ standalone }) => standalone !== true);
  return [...usages.map(sectionOf), ...(configured ? [configuration] : [])];
}

function sectionOf({ topic, words, about, options, examples = [] }: CommandUsage): HelpSection {
  return {
    title: `Usage: portico ${topic} ${words}`,
    about,
    lines: [
      ...Object.entries(options).map(([head, text]) => ({ head, text })),
      ...examples.map((example) => ({ head: `Try: ${example}`, text: '' })),
    ],
  };
}

const configuration: HelpSection = {
  title: 'Configuration',
  about:
    'Options of the configuration are accepted too. It is read as for the service: from options, environment ' +
    'and configuration module. "portico help serve" lists them.',
};

interface HelpLine {
  readonly head: string;
  /** The environment variable of an option. */
  readonly variable?: string;
  /** If empty, the head stands alone and is never broken. */
  readonly text: string;
}

interface HelpSection {
  readonly title: string;
  readonly about?: string;
  readonly lines?: readonly HelpLine[];
}

/** Columns for the head of a line with a variable: the longest variable then fits in 72 columns. */
const HEAD = 32;

/** Renders a help page in 72 to 100 columns, or 80 if the width is unknown. */
function renderHelp(sections: readonly HelpSection[], width: number, paint: Paint = plainly): string {
  const columns = Math.min(100, Math.max(72, Math.floor(width) || 80));
  return `${sections.map((section) => renderSection(section, columns, paint).join('\n')).join('\n\n')}\n`;
}

function renderSection(
  { title, about, lines = [] }: HelpSection,
  columns: number,
  paint: Paint,
): readonly string[] {
  const heads = lines.filter(({ text }) => text !== '').map(({ head }) => head.length);
  const width = Math.max(0, ...heads);
  return [
    paint('bold', title),
    ...(about === undefined ? [] : hang('  ', about, columns)),
    ...lines.flatMap((line) => renderLine(line, width, columns)),
  ];
}

/** The text follows the head on its line, or on the next line if there is a variable. */
function renderLine({ head, variable, text }: HelpLine, width: number, columns: number): readonly string[] {
  if (text === '') return [`  ${head}`];
  if (variable === undefined) return hang(`  ${head.padEnd(width)}  `, text, columns);
  const gap = ' '.repeat(HEAD + 4);
  const top = head.length <= HEAD ? [`  ${head.padEnd(HEAD)}  ${variable}`] : [`  ${head}`, gap + variable];
  return [...top, ...hang('      ', text, columns)];
}

/** Breaks a text at spaces; further lines are indented by the length of `lead`. */
function hang(lead: string, text: string, columns: number): readonly string[] {
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

/** `portico help`: one screen. */
function generalHelp(commands: readonly CommandEntry[]): readonly HelpSection[] {
  return [
    {
      title: 'Usage: portico [command] [options]',
      lines: commands.map(({ name, summary }) => ({ head: name, text: summary })),
    },
  ];
}

/** `portico help serve`: all options of the configuration by their door, the most important first. */
function serviceHelp(): readonly HelpSection[] {
  const first = optionKeys.filter((key) => optionOf(key).essential);
  const others = optionKeys.filter((key) => !optionOf(key).essential);
  const general = others.filter((key) => doors.every((door) => optionOf(key).group !== door));
  return [
    {
      title: 'Usage: portico [serve] [options]',
      about:
        'Opens the doors and runs until it receives a signal. Exit code 0: stopped by a signal. Exit code 2: wrong ' +
        'configuration.',
    },
    { title: 'First', lines: [moduleLine, ...first.map(lineOf)] },
    { title: 'All doors', lines: general.map(lineOf) },
    ...doors.map((door) => ({
      title: groups[door],
      lines: others.filter((key) => optionOf(key).group === door).map(lineOf),
    })),
    {
      title: 'Renamed events',
      about:
        "Signed sources of these schemes rename their senders' events, unless webhook.sources.<name>.events says " +
        "otherwise. Handlers, forward addresses and --event take either name; a handler for the sender's name takes precedence.",
      lines: renamedEvents().map(({ scheme, event, names }) => ({
        head: scheme,
        text: `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} ${event}`,
      })),
    },
    {
      title: 'Precedence',
      about:
        'An option takes precedence over the environment variable after it, the variable over the configuration module, the ' +
        'module over the default. [_FILE]: the variable with the suffix _FILE may name a file that contains the value.',
    },
  ];
}

const moduleLine: HelpLine = {
  head: `${moduleOption.flag} <file>`,
  variable: moduleOption.env,
  text: `${moduleOption.help} [default: ${moduleOption.default}]`,
};

function lineOf(key: OptionKey): HelpLine {
  const option = optionOf(key);
  const given = formatDefault(option);
  return {
    head: `${flagOf(key)} <${option.kind.placeholder}>`,
    variable: option.secret ? `${option.env}[_FILE]` : option.env,
    text: `${option.help} [${option.default === undefined ? given : `default: ${given}`}]`,
  };
}

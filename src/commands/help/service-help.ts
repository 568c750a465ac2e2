import { doors } from '../../config/options/door.ts';
import { flagOf, formatDefault } from '../../config/options/option.ts';
import { moduleOption, type OptionKey, optionKeys, optionOf } from '../../config/options/options.ts';
import { renamedEvents } from '../../webhook/sources/defaults.ts';
import { commands } from '../argv/command-line.ts';
import type { HelpLine, HelpSection } from './render-help.ts';

const titles = { graphql: 'GraphQL', rest: 'REST', management: 'Management', webhook: 'Webhooks' } as const;

/** The sections of `portico help`: all commands, and all options of the configuration by their door. */
export function serviceHelp(): readonly HelpSection[] {
  const general = optionKeys.filter((key) => doors.every((door) => !key.startsWith(`${door}.`)));
  return [
    { title: 'Usage: portico [command] [options]' },
    { title: 'Commands', lines: commands.map(({ name, summary }) => ({ head: name, text: summary })) },
    { title: 'All doors', lines: [moduleLine, ...general.map(lineOf)] },
    ...doors.map((door) => ({
      title: titles[door],
      lines: optionKeys.filter((key) => key.startsWith(`${door}.`)).map(lineOf),
    })),
    {
      title: 'Renamed events',
      about:
        'Signed sources of these schemes rename events of their senders, unless webhook.sources.<name>.events says ' +
        "otherwise. Handlers, forward addresses and --event take either name; a handler under the sender's own name wins.",
      lines: renamedEvents().map(({ scheme, event, names }) => ({
        head: scheme,
        text: `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} ${event}`,
      })),
    },
    {
      title: 'Precedence',
      about:
        'An option wins over the environment variable behind it, the variable over the configuration module, the ' +
        'module over the default. [_FILE]: the variable with _FILE behind its name may name a file that holds the value.',
    },
  ];
}

const moduleLine: HelpLine = {
  head: `${moduleOption.flag} <file>`,
  variable: moduleOption.env,
  text: `${moduleOption.description} [default: ${moduleOption.default}]`,
};

function lineOf(key: OptionKey): HelpLine {
  const option = optionOf(key);
  const given = formatDefault(option);
  return {
    head: `${flagOf(key)} <${option.kind.placeholder}>`,
    variable: option.secret ? `${option.env}[_FILE]` : option.env,
    text: `${option.description} [${option.default === undefined ? given : `default: ${given}`}]`,
  };
}

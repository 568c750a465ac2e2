import type { CommandUsage } from './command-usage.ts';
import type { HelpSection } from './render-help.ts';
import { usages } from './usages.ts';

/**
 * The sections of `portico help <command>`: of the part that `words` name, or of all parts of the command. Empty for
 * a command that has no options of its own.
 */
export function commandHelp(words: readonly string[]): readonly HelpSection[] {
  const [command, part] = words;
  const parts = Object.values<CommandUsage>(usages).filter(({ topic }) => topic.split(' ')[0] === command);
  const exact = parts.filter(({ topic }) => topic === `${command} ${part}`);
  const chosen = exact.length > 0 ? exact : parts;
  const configured = chosen.some(({ standalone }) => standalone !== true);
  return [...chosen.map(sectionOf), ...(configured ? [configuration] : [])];
}

function sectionOf({ topic, words, about, options, examples = [] }: CommandUsage): HelpSection {
  return {
    title: `Usage: portico ${topic} ${words}`,
    about,
    lines: [
      ...options.map(({ flag, value, description }) => ({
        head: value === undefined ? flag : `${flag} <${value}>`,
        text: description,
      })),
      ...examples.map((example) => ({ head: `Try: ${example}`, text: '' })),
    ],
  };
}

const configuration: HelpSection = {
  title: 'Configuration',
  about:
    'Options of the configuration can be given too; it is read as the service reads it, from options, environment ' +
    'and configuration module. "portico help" lists them.',
};

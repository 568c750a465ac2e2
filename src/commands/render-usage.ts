import type { CommandUsage } from './command-usage.ts';
import { deliveriesUsages } from './deliveries/usages.ts';
import { hashPasswordUsage } from './hash-password-usage.ts';
import { migrateUsage } from './migrate-usage.ts';
import { moveUsage } from './move-usage.ts';
import { sendUsage } from './send/usage.ts';
import { hang } from './service-help.ts';

const usages: readonly CommandUsage[] = [
  hashPasswordUsage,
  ...deliveriesUsages,
  sendUsage,
  migrateUsage,
  moveUsage,
];

/** The commands that read the configuration. */
const CONFIGURED = new Set<CommandUsage>([...deliveriesUsages, sendUsage, migrateUsage, moveUsage]);

/**
 * How the command is called that `words` begin with; undefined when there is nothing to say of it beyond the general
 * help. For a terminal of so many columns; between 72 and 100 of them are used.
 */
export function renderUsage(words: readonly string[], width: number): string | undefined {
  const [command = '', part = ''] = words;
  const exact = usages.filter(({ topic }) => topic === `${command} ${part}`);
  const chosen =
    exact.length > 0 ? exact : usages.filter(({ topic }) => `${topic} `.startsWith(`${command} `));
  if (chosen.length === 0) return undefined;
  const columns = Math.min(100, Math.max(72, Math.floor(width) || 80));
  const lines = chosen.flatMap((usage, i) => [...(i > 0 ? [''] : []), ...describe(usage, columns)]);
  if (chosen.some((usage) => CONFIGURED.has(usage))) lines.push('', ...hang('', CONFIGURATION, columns));
  return `${lines.join('\n')}\n`;
}

const CONFIGURATION =
  'The options of the configuration can be given too, and it is read as the service reads it: flags, environment, ' +
  'configuration module. "portico help" lists them.';

function describe({ topic, words, about, options, examples = [] }: CommandUsage, columns: number) {
  const heads = options.map(({ flag, value }) => (value === undefined ? flag : `${flag} <${value}>`));
  const width = Math.max(...heads.map(({ length }) => length));
  return [
    `Usage: portico ${topic} ${words}`.trimEnd(),
    ...hang('  ', about, columns),
    ...options.flatMap(({ description }, i) =>
      hang(`  ${(heads[i] ?? '').padEnd(width)}  `, description, columns),
    ),
    ...examples.map((example) => `  Try: ${example}`),
  ];
}

import type { CommandOption, CommandUsage } from '../command-usage.ts';

const json: CommandOption = { flag: '--json', description: 'One JSON document instead of text.' };
const yes: CommandOption = { flag: '--yes', description: 'Ask nothing, whatever the number.' };

const filters: readonly CommandOption[] = [
  {
    flag: '--status',
    value: 'status',
    description: 'Only those that are unhandled, processing, pending, dead, done or discarded.',
  },
  { flag: '--event', value: 'name', description: 'Only those of this event.' },
  {
    flag: '--source',
    value: 'name',
    description: 'Only those of this signed source; "" for /webhook itself.',
  },
];
const times: readonly CommandOption[] = [
  {
    flag: '--since',
    value: 'time',
    description:
      'Received then or later: ISO 8601, or how long ago, like 15m, 2h or 3d. Local time unless a zone is given.',
  },
  { flag: '--until', value: 'time', description: 'Received before then.' },
];
const dead: CommandOption = { flag: '--dead', description: 'All that are dead; the same as --status dead.' };
const bulkWords = { words: '[id...] [options]', mostWords: Number.POSITIVE_INFINITY };

export const listUsage: CommandUsage = {
  topic: 'deliveries list',
  words: '[options]',
  about: 'Lists deliveries, the newest first.',
  options: [
    ...filters,
    ...times,
    { flag: '--limit', value: 'n', description: 'How many at most. [default: 20]' },
    {
      flag: '--before',
      value: 'n',
      description: 'Where the list begins, as the end of the list before it says.',
    },
    json,
  ],
  examples: ['portico deliveries list --status dead --since 2h'],
};

export const showUsage: CommandUsage = {
  topic: 'deliveries show',
  words: '<id> [options]',
  mostWords: 1,
  about: 'Shows all there is to know of a delivery: its jobs, their attempts and errors, and the body.',
  options: [{ flag: '--raw', description: 'Write the body alone, byte for byte as it came.' }, json],
};

export const tailUsage: CommandUsage = {
  topic: 'deliveries tail',
  words: '[options]',
  about: 'Follows new deliveries until Ctrl+C; with --status each is shown once it has that status.',
  options: [...filters, { flag: '--json', description: 'One JSON document on each line instead of text.' }],
  examples: ['portico deliveries tail --status dead'],
};

export const replayUsage: CommandUsage = {
  topic: 'deliveries replay',
  ...bulkWords,
  about:
    'Has deliveries handled again: what died of them, or all of them when nothing did. Named by their ids, or by ' +
    'what they have in common; then those that are still open are left out. A running service begins within a ' +
    'second, another one when it starts.',
  options: [dead, ...filters, ...times, yes, json],
  examples: ['portico deliveries replay --dead', 'portico deliveries replay --event invoice --since 2h'],
};

export const discardUsage: CommandUsage = {
  topic: 'deliveries discard',
  ...bulkWords,
  about: 'Gives up what is open or dead of deliveries. They stay in the list, and can be replayed.',
  options: [dead, ...filters, ...times, yes, json],
  examples: ['portico deliveries discard --dead --until 30d'],
};

export const deliveriesUsages: readonly CommandUsage[] = [
  listUsage,
  showUsage,
  tailUsage,
  replayUsage,
  discardUsage,
];

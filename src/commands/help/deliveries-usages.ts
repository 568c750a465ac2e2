import type { CommandOption, CommandUsage } from './command-usage.ts';

const json: CommandOption = { flag: '--json', description: 'Prints one JSON document instead of text.' };
const yes: CommandOption = {
  flag: '--yes',
  description: 'Skips the confirmation on a terminal.',
};

const filters: readonly CommandOption[] = [
  {
    flag: '--status',
    value: 'status',
    description: 'Status of the deliveries: unhandled, processing, pending, dead, done or discarded.',
  },
  { flag: '--event', value: 'name', description: 'Event of the deliveries.' },
  {
    flag: '--source',
    value: 'name',
    description: 'Source of the deliveries; "" for those that came to /webhook.',
  },
];
const times: readonly CommandOption[] = [
  {
    flag: '--since',
    value: 'time',
    description:
      'Earliest time of receipt: ISO 8601 (local time unless a zone is given), or an age like 15m, 2h or 3d.',
  },
  { flag: '--until', value: 'time', description: 'Time of receipt before which deliveries match.' },
];
const dead: CommandOption = {
  flag: '--dead',
  description: 'All dead deliveries; the same as --status dead.',
};
const bulk = { words: '[id...] [options]', maxWords: Number.POSITIVE_INFINITY };

export const listUsage: CommandUsage = {
  topic: 'deliveries list',
  words: '[options]',
  about: 'Lists deliveries, newest first.',
  options: [
    ...filters,
    ...times,
    { flag: '--limit', value: 'n', description: 'Maximum number of deliveries. [default: 20]' },
    {
      flag: '--before',
      value: 'n',
      description: 'Number at which the next page begins, as printed at the end of a page.',
    },
    json,
  ],
  examples: ['portico deliveries list --status dead --since 2h'],
};

export const showUsage: CommandUsage = {
  topic: 'deliveries show',
  words: '<id> [options]',
  maxWords: 1,
  about: 'Shows one delivery: its jobs, their attempts and errors, and the body.',
  options: [{ flag: '--raw', description: 'Writes the body alone, byte for byte as received.' }, json],
};

export const tailUsage: CommandUsage = {
  topic: 'deliveries tail',
  words: '[options]',
  about:
    'Follows new deliveries until Ctrl+C. With --status it shows each delivery when it gets that status.',
  options: [
    ...filters,
    { flag: '--json', description: 'Prints one JSON document per line instead of text.' },
  ],
  examples: ['portico deliveries tail --status dead'],
};

export const replayUsage: CommandUsage = {
  topic: 'deliveries replay',
  ...bulk,
  about:
    'Replays deliveries, named by id or matched by options. Replaying a dead delivery retries only its failed jobs, ' +
    'replaying any other runs all its jobs. Open deliveries are not replayed. A running service starts the jobs ' +
    'within a second, a stopped one when it starts.',
  options: [dead, ...filters, ...times, yes, json],
  examples: ['portico deliveries replay --dead', 'portico deliveries replay --event invoice --since 2h'],
};

export const discardUsage: CommandUsage = {
  topic: 'deliveries discard',
  ...bulk,
  about:
    'Discards the open and dead jobs of deliveries, named by id or matched by options. The deliveries stay in the ' +
    'list and can be replayed.',
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

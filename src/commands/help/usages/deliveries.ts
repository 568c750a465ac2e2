import type { CommandOption, CommandUsage } from '../command-usage.ts';
import { json, yes } from './shared.ts';

const filters: readonly CommandOption[] = [
  {
    flag: '--status',
    value: 'status',
    description: 'Status of the deliveries: unhandled, processing, pending, dead, done or discarded.',
  },
  {
    flag: '--event',
    value: 'name',
    description: "Event of the deliveries, by the sender's own name or by the one that its source gives it.",
  },
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
  { flag: '--text', value: 'text', description: 'Text in the body of the deliveries, case by case.' },
  { flag: '--until', value: 'time', description: 'Time of receipt before which deliveries match.' },
];
const dead: CommandOption = {
  flag: '--dead',
  description: 'All dead deliveries; the same as --status dead.',
};
const naming = "its id, the beginning of one, or the sender's own id";
const bulk = { words: '[id...] [options]', maxWords: Number.POSITIVE_INFINITY };

/** The subcommands of `deliveries`. */
export const deliveriesUsages = {
  list: {
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
  },
  show: {
    topic: 'deliveries show',
    words: '<id> [options]',
    maxWords: 1,
    about: `Shows one delivery, named by ${naming}: its jobs, their attempts and errors, and the body.`,
    options: [{ flag: '--raw', description: 'Writes the body alone, byte for byte as received.' }, json],
  },
  tail: {
    topic: 'deliveries tail',
    words: '[options]',
    about:
      'Follows new deliveries until Ctrl+C. With --status it shows each delivery when it gets that status.',
    options: [
      ...filters,
      { flag: '--json', description: 'Prints one JSON document per line instead of text.' },
    ],
    examples: ['portico deliveries tail --status dead'],
  },
  replay: {
    topic: 'deliveries replay',
    ...bulk,
    about:
      `Replays deliveries, each named by ${naming}, or matched by options. Replaying a dead delivery retries only its failed jobs, ` +
      'replaying any other runs all its jobs. Open deliveries are not replayed. A running service starts the jobs ' +
      'within a second, a stopped one when it starts.',
    options: [dead, ...filters, ...times, yes, json],
    examples: ['portico deliveries replay --dead', 'portico deliveries replay --event invoice --since 2h'],
  },
  discard: {
    topic: 'deliveries discard',
    ...bulk,
    about:
      `Discards the open and dead jobs of deliveries, each named by ${naming}, or matched by options. The deliveries stay in the ` +
      'list and can be replayed.',
    options: [dead, ...filters, ...times, yes, json],
    examples: ['portico deliveries discard --dead --until 30d'],
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;

import type { CommandUsage } from './command-usage.ts';

export const moveUsage: CommandUsage = {
  topic: 'move',
  words: '--to <url> [options]',
  about:
    'Copies users and deliveries with their ids, jobs and order into an empty database of any engine, and compares ' +
    'both. No service may run on either database meanwhile. An interrupted move resumes when called again with the ' +
    'same arguments; until it has ended, no service starts on the target. The source is not changed.',
  options: [
    {
      flag: '--from',
      value: 'url',
      secret: true,
      description: 'Source: sqlite:<file> or postgres://... [default: the database of the configuration]',
    },
    {
      flag: '--to',
      value: 'url',
      secret: true,
      description: 'Target: sqlite:<file>, created when missing, or postgres://...',
    },
    { flag: '--restart', description: 'Deletes what an interrupted move has copied, and starts over.' },
    { flag: '--json', description: 'Prints one JSON document instead of text.' },
  ],
  examples: [
    'portico move --from sqlite:portico.db --to postgres://portico@db/portico',
    'portico move --from postgres://portico@db/portico --to sqlite:portico.db',
  ],
};

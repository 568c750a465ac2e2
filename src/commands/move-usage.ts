import type { CommandUsage } from './command-usage.ts';

export const moveUsage: CommandUsage = {
  topic: 'move',
  words: '--to <url> [options]',
  about:
    'Copies users and deliveries with their ids, jobs and order into an empty database of any engine, and compares ' +
    'what both hold. Nothing may run on either of the two meanwhile. Interrupted, it goes on when it is called ' +
    'again with the same arguments; until it is through, no service starts on the target. The source stays as it is.',
  options: [
    {
      flag: '--from',
      value: 'url',
      secret: true,
      description:
        'The database to move: sqlite:<file> or postgres://... [default: that of the configuration]',
    },
    { flag: '--to', value: 'url', secret: true, description: 'Where to. A file is made when there is none.' },
    {
      flag: '--restart',
      description: 'Throw away what a move that has not ended has copied, and begin anew.',
    },
    { flag: '--json', description: 'One JSON document instead of text.' },
  ],
  examples: [
    'portico move --from sqlite:portico.db --to postgres://portico@db/portico',
    'portico move --from postgres://portico@db/portico --to sqlite:portico.db',
  ],
};

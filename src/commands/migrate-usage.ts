import type { CommandUsage } from './command-usage.ts';

export const migrateUsage: CommandUsage = {
  topic: 'migrate',
  words: '[options]',
  about:
    'Brings the schema of the database up to date, which every start does by itself unless it is told --no-migrate. ' +
    'However many do it at the same time, it happens once. Exit code 0: it is up to date.',
  options: [
    {
      flag: '--check',
      description: 'Only say what is missing, and write nothing. Exit code 3: something is.',
    },
    { flag: '--json', description: 'One JSON document instead of text.' },
  ],
  examples: ['portico migrate --check', 'portico migrate --database-url postgres://portico@db/portico'],
};

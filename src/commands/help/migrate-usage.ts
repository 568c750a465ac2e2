import type { CommandUsage } from './command-usage.ts';

export const migrateUsage: CommandUsage = {
  topic: 'migrate',
  words: '[options]',
  about:
    'Brings the schema of the database up to date, as every start does unless it is called with --no-migrate. ' +
    'Concurrent calls run each migration once. Exit code 0: the schema is up to date.',
  options: [
    {
      flag: '--check',
      description: 'Lists missing migrations and writes nothing. Exit code 3: migrations are missing.',
    },
    { flag: '--json', description: 'Prints one JSON document instead of text.' },
  ],
  examples: ['portico migrate --check', 'portico migrate --database-url postgres://portico@db/portico'],
};

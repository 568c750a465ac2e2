import type { CommandUsage } from '../command-usage.ts';
import { json, yes } from './shared.ts';

/** The commands that work on a whole database. */
export const databaseUsages = {
  migrate: {
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
      json,
    ],
    examples: ['portico migrate --check', 'portico migrate --database-url postgres://portico@db/portico'],
  },
  move: {
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
      json,
    ],
    examples: [
      'portico move --from sqlite:portico.db --to postgres://portico@db/portico',
      'portico move --from postgres://portico@db/portico --to sqlite:portico.db',
    ],
  },
  backup: {
    topic: 'backup',
    words: '[file or folder] [options]',
    maxWords: 1,
    about:
      'Writes a backup of an SQLite database, of one moment, while the service runs or not, and checks it: its ' +
      'integrity and the number of rows of each table. Without a file it goes to BACKUP_FOLDER under a name with the ' +
      'time. For PostgreSQL it prints the pg_dump to run.',
    options: [json],
    examples: ['portico backup', 'portico backup /mnt/backups/portico.db'],
  },
  restore: {
    topic: 'restore',
    words: '<file> [options]',
    maxWords: 1,
    about:
      'Puts a backup in the place of the SQLite database, after it was copied and checked. No service may run on the ' +
      'database meanwhile. The database that was there is kept beside it. For PostgreSQL it prints the pg_restore to run.',
    options: [yes, json],
    examples: ['portico restore backups/portico-2026-01-31T14-00-00Z.db'],
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;

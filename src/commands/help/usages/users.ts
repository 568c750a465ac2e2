import type { CommandOption, CommandUsage } from '../command-usage.ts';
import { json } from './shared.ts';

const format = {
  flag: '--format',
  value: 'word',
  description: 'Format: csv, ndjson or json, which is an array.',
} as const satisfies CommandOption;

/** The subcommands of `users`. */
export const usersUsages = {
  usersList: {
    topic: 'users list',
    words: '[options]',
    about: 'Lists users by their ids.',
    options: [
      { flag: '--find', value: 'text', description: 'Text that the name or the email contains.' },
      { flag: '--limit', value: 'n', description: 'Maximum number of users, up to 1,000. [default: 20]' },
      { flag: '--after', value: 'id', description: 'Id behind which the list begins.' },
      json,
    ],
    examples: ['portico users list --find @example.com'],
  },
  usersImport: {
    topic: 'users import',
    words: '<file> [options]',
    maxWords: 1,
    about:
      'Imports users from a file, or from standard input (-), whether or not a service runs on the database. Each line ' +
      'is judged as a single create would be; those that are refused are named, and the others are stored. What is ' +
      'stored is recorded with its users: an interrupted import goes on when called again with the same file, and a ' +
      'file that was imported is not imported again. Exit code 1: lines were refused.',
    options: [
      { ...format, description: `${format.description} [default: that of the name of the file]` },
      {
        flag: '--transaction',
        description: 'Stores all users in one transaction, at most 50,000, or none when a line is refused.',
      },
      {
        flag: '--key',
        value: 'text',
        description: 'Name of the import, by which it goes on. [default: a digest of the file]',
      },
      { flag: '--again', description: 'Imports a file once more that was imported before.' },
      json,
    ],
    examples: [
      'portico users import users.csv',
      'zcat users.ndjson.gz | portico users import - --format ndjson',
    ],
  },
  usersExport: {
    topic: 'users export',
    words: '[file] [options]',
    maxWords: 1,
    about:
      'Writes all users that there are into a file, or to standard output. An interrupted export goes on when called ' +
      'again with the same file; until it has ended the users are in a file with .part behind its name.',
    options: [
      {
        ...format,
        description: 'Format: csv or ndjson. [default: that of the name of the file, else ndjson]',
      },
      { flag: '--restart', description: 'Begins anew where an export was interrupted.' },
      { flag: '--json', description: 'Prints one JSON document instead of text; needs a file.' },
    ],
    examples: ['portico users export users.csv'],
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;

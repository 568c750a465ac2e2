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
const naming = "its id, the beginning of one, or the sender's own id";
const bulk = { words: '[id...] [options]', maxWords: Number.POSITIVE_INFINITY };

/** Every command that takes options of its own, in the order of the help. */
export const usages = {
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
  send: {
    topic: 'send',
    words: '[options]',
    about:
      'Sends a delivery to a receiver, signed as its sender would. Without options it goes to /webhook of the webhook ' +
      'door of this configuration, with its token.',
    options: [
      {
        flag: '--source',
        value: 'name',
        description: 'Sender of webhook.sources whose scheme, secret and layout are used.',
      },
      {
        flag: '--url',
        value: 'url',
        description: 'URL of another receiver; without a path the webhook door there.',
      },
      {
        flag: '--scheme',
        value: 'word',
        description:
          'Signature scheme: standard, github, stripe, slack, hmac, token or none. [default: that of --source, else token]',
      },
      { flag: '--secret', value: 'text', secret: true, description: 'Secret to sign with.' },
      { flag: '--secret-file', value: 'file', description: 'File that holds the secret to sign with.' },
      {
        flag: '--signature-header',
        value: 'name',
        description: 'Header of the signature for --scheme hmac, of the token for --scheme token.',
      },
      {
        flag: '--event',
        value: 'name',
        description: "Event, by the sender's own name. [default: test]",
      },
      {
        flag: '--data',
        value: 'json',
        description: 'Data of the event: JSON, @file, or - for standard input. [default: {}]',
      },
      {
        flag: '--body',
        value: 'json',
        description: 'Whole body, sent byte for byte, instead of --data: JSON, @file, or -.',
      },
      {
        flag: '--header',
        value: 'name: text',
        repeatable: true,
        description: 'Additional header; can be given more than once.',
      },
      {
        flag: '--id',
        value: 'text',
        description:
          'Id of the delivery, by which a receiver recognises duplicates. [default: a new one for each delivery]',
      },
      {
        flag: '--count',
        value: 'n',
        description: 'Number of deliveries, sent one after the other. [default: 1]',
      },
      json,
    ],
    examples: [
      `portico send --event new_commit --data '{"sha":"c0ffee"}'`,
      'portico send --source github --event push --data @push.json',
      'portico send --url https://example.com/hooks --scheme standard --secret-file secret.txt',
    ],
  },
  tokensCreate: {
    topic: 'tokens create',
    words: '<name> --scopes <scopes> [options]',
    maxWords: 1,
    about:
      'Makes a token for REST and GraphQL and prints it, once: the database has its digest only. Running services accept ' +
      'it at once.',
    options: [
      { flag: '--scopes', value: 'list', description: 'Scopes of the token, separated by commas.' },
      {
        flag: '--expires',
        value: 'time',
        description: 'When it ends: days like 90d, or a time like 2027-01-31. [default: never]',
      },
      json,
    ],
    examples: ['portico tokens create ci --scopes users:read,users:write --expires 90d'],
  },
  tokensList: {
    topic: 'tokens list',
    words: '[options]',
    about: 'Lists the tokens of the database, with their last use, which is up to a minute old.',
    options: [{ flag: '--all', description: 'Revoked tokens too.' }, json],
  },
  tokensRevoke: {
    topic: 'tokens revoke',
    words: '<name...> [options]',
    maxWords: Number.POSITIVE_INFINITY,
    about: 'Revokes tokens by name. Running services refuse them within 5 seconds.',
    options: [],
  },
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
  hashPassword: {
    topic: 'hash-password',
    words: '[--argon2id]',
    // A password given as an argument has a message of its own.
    maxWords: Number.POSITIVE_INFINITY,
    about:
      'Asks for a password twice, or reads it from standard input, and prints its scrypt hash for MANAGEMENT_PASSWORD.',
    options: [{ flag: '--argon2id', description: 'Hashes by Argon2id instead of scrypt.' }],
    standalone: true,
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;

import type { OptionRule } from '../config/sources.ts';

/** An option of one command. */
interface CommandOption extends OptionRule {
  readonly flag: string;
  readonly description: string;
}

/** How a command is called. */
export interface CommandUsage {
  /** The command with its subcommand, as written after `portico` and `portico help`. */
  readonly topic: string;
  /** The words after the topic, such as `<id>`. */
  readonly words: string;
  /** Maximum number of positional words. Default: 0. */
  readonly maxWords?: number;
  readonly about: string;
  readonly options: readonly CommandOption[];
  readonly examples?: readonly string[];
  /** Whether it reads no configuration, and so accepts none of its options. Default: false. */
  readonly standalone?: boolean;
}

/** Options that several commands share. */
const json: CommandOption = {
  flag: '--json',
  description: 'Prints one JSON document instead of text.',
};

/** Answers the question that a command would ask on a terminal. */
const yes: CommandOption = {
  flag: '--yes',
  description: 'Skips the confirmation on a terminal.',
};

/** The commands that work on a whole database. */
const databaseUsages = {
  migrate: {
    topic: 'migrate',
    words: '[options]',
    about:
      'Brings the schema of the database up to date, as every start does without --no-migrate. ' +
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
      'both. No service may run on either database meanwhile. To resume an interrupted move, run it again with the ' +
      'same arguments; until it is complete, no service starts on the target. The source stays unchanged.',
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
        description: 'Target: sqlite:<file>, created if missing, or postgres://...',
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
      'Writes a consistent backup of an SQLite database, whether or not the service runs, and checks its integrity and ' +
      'the number of rows of each table. Without a file it goes to BACKUP_FOLDER under a name with the time. For ' +
      'PostgreSQL it prints the pg_dump to run.',
    options: [json],
    examples: ['portico backup', 'portico backup /mnt/backups/portico.db'],
  },
  restore: {
    topic: 'restore',
    words: '<file> [options]',
    maxWords: 1,
    about:
      'Copies and checks a backup, then replaces the SQLite database with it. No service may run on the database ' +
      'meanwhile. The previous database is kept beside it. For PostgreSQL it prints the pg_restore to run.',
    options: [yes, json],
    examples: ['portico restore backups/portico-2026-01-31T14-00-00Z.db'],
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;

const filters: readonly CommandOption[] = [
  {
    flag: '--status',
    value: 'status',
    description: 'Status of the deliveries: unhandled, processing, pending, dead, done or discarded.',
  },
  {
    flag: '--event',
    value: 'name',
    description: "Event of the deliveries, by the sender's name or the name in Portico.",
  },
  {
    flag: '--source',
    value: 'name',
    description: 'Source of the deliveries; "" for those sent to /webhook.',
  },
];
const times: readonly CommandOption[] = [
  {
    flag: '--since',
    value: 'time',
    description:
      'Earliest time of receipt: ISO 8601 (local time unless a zone is given), or an age like 15m, 2h or 3d.',
  },
  { flag: '--text', value: 'text', description: 'Text in the body of the deliveries, case-sensitive.' },
  { flag: '--until', value: 'time', description: 'Time of receipt before which deliveries match.' },
];
const dead: CommandOption = {
  flag: '--dead',
  description: 'All dead deliveries; the same as --status dead.',
};
const naming = "its id, the beginning of it, or the sender's id";
const bulk = { words: '[id...] [options]', maxWords: Number.POSITIVE_INFINITY };

/** The subcommands of `deliveries`. */
const deliveriesUsages = {
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
        description: 'Number where the next page begins, as printed at the end of a page.',
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
    options: [{ flag: '--raw', description: 'Writes only the body, byte for byte as received.' }, json],
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
      'replaying any other runs all its jobs. Open deliveries are skipped. A running service starts the jobs ' +
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

/** The commands that need no database. */
const otherUsages = {
  init: {
    topic: 'init',
    words: '[folder] [options]',
    maxWords: 1,
    about:
      'Writes portico.config.mts with a handler, a health check and an endpoint into a folder, the current one by ' +
      'default. It overwrites nothing.',
    options: [
      {
        flag: '--package',
        description:
          'Also writes a package.json, if there is none, that depends on this package, so "npm install" and "npm start" ' +
          'start the service.',
      },
      yes,
    ],
    examples: ['portico init --yes', 'portico init my-service --package --yes'],
    standalone: true,
  },
  health: {
    topic: 'health',
    words: '[options]',
    about:
      'Checks whether the service of this configuration is ready: asks /readyz of the management door or, if that is ' +
      'closed, connects to the other doors. Exit code 0: ready. Exit code 1: not ready; standard error has the ' +
      'reason. A wrong option exits with 1 too, because container engines know no other code.',
    options: [
      {
        flag: '--url',
        value: 'url',
        description:
          'URL to ask; without a path /readyz there. [default: the management door of the configuration]',
      },
      {
        flag: '--timeout',
        value: 'ms',
        description: 'Time limit from the start of the command, in milliseconds. [default: 5000]',
      },
    ],
    examples: ['portico health', 'portico health --url http://127.0.0.1:8080 --timeout 1000'],
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
        description: 'Source in webhook.sources whose scheme, secret and layout to use.',
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
      { flag: '--secret-file', value: 'file', description: 'File with the secret to sign with.' },
      {
        flag: '--signature-header',
        value: 'name',
        description: 'Header for the signature with --scheme hmac, or for the token with --scheme token.',
      },
      {
        flag: '--event',
        value: 'name',
        description: "Event, by the sender's name or the name in Portico. [default: test]",
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
          'Id of the delivery; receivers use it to recognise duplicates. [default: a new one for each delivery]',
      },
      {
        flag: '--count',
        value: 'n',
        description: 'Number of deliveries, sent one at a time. [default: 1]',
      },
      json,
    ],
    examples: [
      `portico send --event new_commit --data '{"sha":"c0ffee"}'`,
      'portico send --source github --event push --data @push.json',
      'portico send --url https://example.com/hooks --scheme standard --secret-file secret.txt',
    ],
  },
  hashPassword: {
    topic: 'hash-password',
    words: '[--argon2id]',
    // A password given as an argument gets a specific message.
    maxWords: Number.POSITIVE_INFINITY,
    about:
      'Asks for a password twice, or reads it from standard input, and prints its scrypt hash for MANAGEMENT_PASSWORD.',
    options: [{ flag: '--argon2id', description: 'Hashes with Argon2id instead of scrypt.' }],
    standalone: true,
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;

/** The subcommands of `tokens`. */
const tokensUsages = {
  tokensCreate: {
    topic: 'tokens create',
    words: '<name> --scopes <scopes> [options]',
    maxWords: 1,
    about:
      'Creates a token for REST and GraphQL and prints it once: the database stores only its digest. Running services accept ' +
      'it at once.',
    options: [
      { flag: '--scopes', value: 'list', description: 'Scopes of the token, separated by commas.' },
      {
        flag: '--expires',
        value: 'time',
        description: 'Expiry: days such as 90d, or a time such as 2027-01-31. [default: never]',
      },
      json,
    ],
    examples: ['portico tokens create ci --scopes users:read,users:write --expires 90d'],
  },
  tokensList: {
    topic: 'tokens list',
    words: '[options]',
    about: 'Lists the tokens of the database, with their last use, which is up to a minute old.',
    options: [{ flag: '--all', description: 'Includes revoked tokens.' }, json],
  },
  tokensRevoke: {
    topic: 'tokens revoke',
    words: '<name...> [options]',
    maxWords: Number.POSITIVE_INFINITY,
    about: 'Revokes tokens by name. Running services refuse them within 5 seconds.',
    options: [],
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;

const format = {
  flag: '--format',
  value: 'word',
  description: 'Format: csv, ndjson or json, which is an array.',
} as const satisfies CommandOption;

/** The subcommands of `users`. */
const usersUsages = {
  usersList: {
    topic: 'users list',
    words: '[options]',
    about: 'Lists users in the order of their ids.',
    options: [
      { flag: '--find', value: 'text', description: 'Text that the name or the email contains.' },
      { flag: '--limit', value: 'n', description: 'Maximum number of users, up to 1,000. [default: 20]' },
      { flag: '--after', value: 'id', description: 'Id after which the list begins.' },
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
      'is validated like a single create; refused lines are listed, and the others are stored. Progress is recorded ' +
      'with the users: an interrupted import continues if you run it again with the same file, and an imported file ' +
      'is not imported again. Exit code 1: lines were refused.',
    options: [
      { ...format, description: `${format.description} [default: by the name of the file]` },
      {
        flag: '--transaction',
        description: 'Stores all users in one transaction, at most 50,000, or none if a line is refused.',
      },
      {
        flag: '--key',
        value: 'text',
        description: 'Name under which the import can be resumed. [default: a digest of the file]',
      },
      { flag: '--again', description: 'Imports the file again even if it was imported before.' },
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
      'Writes all users into a file, or to standard output. An interrupted export continues if you run it again with ' +
      'the same file; until it is complete, the users are in a file with .part after its name.',
    options: [
      {
        ...format,
        description: 'Format: csv or ndjson. [default: by the name of the file, or ndjson]',
      },
      { flag: '--restart', description: 'Starts an interrupted export over.' },
      { flag: '--json', description: 'Prints one JSON document instead of text; needs a file.' },
    ],
    examples: ['portico users export users.csv'],
  },
} as const satisfies Readonly<Record<string, CommandUsage>>;

/** Every command that takes options of its own, in the order of the help. */
export const usages = {
  ...deliveriesUsages,
  ...usersUsages,
  ...otherUsages,
  ...tokensUsages,
  ...databaseUsages,
} as const;

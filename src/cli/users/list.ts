import { paintFor } from '../../core/text.ts';
import { TooManyMatchesError, USER_FIELDS, type UserFilter } from '../../relations/lists.ts';
import { readArguments } from '../arguments.ts';
import { type Command, type CommandIo, JSON_OPTION } from '../command.ts';
import { openExisting } from '../database/open.ts';
import { countOf } from '../deliveries/filter.ts';
import { type Column, note, printJson, printPainted, renderTable } from '../terminal.ts';

const MAX_LIMIT = 1_000;

interface ListedUser {
  readonly id: number;
  readonly name: string;
  readonly email: string;
}

const COLUMNS: readonly Column<ListedUser>[] = [
  { title: 'ID', text: ({ id }) => String(id), right: true },
  { title: 'NAME', text: ({ name }) => name, least: 8 },
  { title: 'EMAIL', text: ({ email }) => email, least: 8 },
];

/** `portico users list`. Resolves to the exit code. */
export const listUsers: Command = {
  usage: {
    topic: 'users list',
    words: '[options]',
    about: 'Lists users in the order of their ids.',
    options: {
      '--find <text>': 'Text that the name or the email contains.',
      '--limit <n>': 'Maximum number of users, up to 1,000. [default: 20]',
      '--after <id>': 'Id after which the list begins.',
      ...JSON_OPTION,
    },
    examples: ['portico users list --find @example.com'],
  },
  run,
};

async function run(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(listUsers.usage, argv, io);
  const limit = Math.min(MAX_LIMIT, countOf(args, 'limit', 20));
  const after = countOf(args, 'after', undefined);
  const text = args.value('--find');
  if (text === '') throw args.misuse('--find needs a text');
  const filters: readonly UserFilter[] =
    text === undefined ? [] : [{ field: 'any', match: 'contains', text }];
  await using database = await openExisting(await args.configuration(), 'users');
  const order = [{ field: 'id', descending: false }] as const;
  const next = after === undefined ? undefined : [after];
  const request = { filters, order, fields: USER_FIELDS, limit, next, backwards: false };
  const page = await Promise.resolve(database.users.lists.page(request)).catch((error: unknown) => {
    if (!(error instanceof TooManyMatchesError)) throw error;
    throw args.misuse('There are more than 10,000 users; export them to search, or ask the REST door');
  });
  const users = JSON.parse(`[${page.json}]`) as readonly ListedUser[];
  const last = page.more ? (users.at(-1)?.id ?? null) : null;
  if (args.has('--json')) {
    await printJson(io, { users, next: last });
    return 0;
  }
  if (users.length === 0) note(io, 'No user matches.');
  else {
    const { stdout, env } = io;
    const lines = renderTable(COLUMNS, users, stdout.isTTY ? stdout.columns : undefined);
    const [title = '', ...rows] = lines;
    await printPainted(io, `${[paintFor(stdout, env)('bold', title), ...rows].join('\n')}\n`);
  }
  if (last !== null) note(io, `More: add --after ${last}`);
  return 0;
}

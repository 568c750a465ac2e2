import { paintFor } from '../../core/text.ts';
import { TooManyMatchesError, USER_FIELDS, type UserFilter } from '../../relations/lists.ts';
import { readArguments } from '../arguments.ts';
import { openExisting } from '../database.ts';
import { countOf } from '../deliveries/filter.ts';
import { type Column, commandIo, note, printJson, printPainted, renderTable } from '../terminal.ts';
import { usages } from '../usages.ts';

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
export async function listUsers(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.usersList, argv);
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
    await printJson({ users, next: last });
    return 0;
  }
  if (users.length === 0) note('No user matches.');
  else {
    const { stdout, env } = commandIo();
    const lines = renderTable(COLUMNS, users, stdout.isTTY ? stdout.columns : undefined);
    const [title = '', ...rows] = lines;
    await printPainted(`${[paintFor(stdout, env)('bold', title), ...rows].join('\n')}\n`);
  }
  if (last !== null) note(`More: add --after ${last}`);
  return 0;
}

import { randomBytes } from 'node:crypto';
import { TOKEN_PREFIX } from '../access/open-policy.ts';
import { tokenDigest } from '../access/policy.ts';
import { knownScopes, SCOPE, unknownScopes } from '../config/options/access.ts';
import { settingsOf } from '../config/options/options.ts';
import { formatSpan, parseIsoTime } from '../inbox/delivery.ts';
import { MAX_TOKENS, type StoredToken } from '../sql/stores/access-stores.ts';
import { readArguments } from './arguments.ts';
import { type Command, type CommandIo, JSON_OPTION } from './command.ts';
import { auditCommand, openExisting } from './database/open.ts';
import { type Column, note, print, printJson, renderTable } from './terminal.ts';

const DAY = 86_400_000;

/** `portico tokens create`: stores a token's digest and prints it once. Resolves to the exit code. */
const createToken: Command = {
  usage: {
    topic: 'tokens create',
    words: '<name> --scopes <scopes> [options]',
    maxWords: 1,
    about:
      'Creates a token for REST and GraphQL and prints it once: the database stores only its digest. Running services accept ' +
      'it at once.',
    options: {
      '--scopes <list>': 'Scopes of the token, separated by commas.',
      '--expires <time>': 'Expiry: days such as 90d, or a time such as 2027-01-31. [default: never]',
      ...JSON_OPTION,
    },
    examples: ['portico tokens create ci --scopes users:read,users:write --expires 90d'],
  },
  run: create,
};

async function create(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(createToken.usage, argv, io);
  const [name = ''] = args.words;
  const scopes = (args.value('--scopes') ?? '').split(',').map((scope) => scope.trim());
  const createdAt = Date.now();
  const given = args.value('--expires');
  const expiresAt = given === undefined ? null : expiryOf(given, createdAt);
  const problems = [
    ...(/^[a-z][a-z0-9-]{0,62}$/.test(name)
      ? []
      : ['A token needs a name of lower-case letters, digits and "-" that begins with a letter']),
    ...(scopes.every((scope) => SCOPE.test(scope))
      ? []
      : ['--scopes needs scopes, like users:read,users:write']),
    ...(expiresAt === undefined ? ['--expires needs days like 90d, or a future time like 2027-01-31'] : []),
  ];
  if (expiresAt === undefined || problems.length > 0) throw args.misuse(...problems);

  const config = await args.configuration();
  const unknown = unknownScopes('--scopes', scopes, knownScopes(settingsOf(config.settings, 'api')));
  if (unknown.length > 0) throw args.misuse(...unknown);
  const token = TOKEN_PREFIX + randomBytes(32).toString('base64url');
  await using database = await openExisting(config, 'tokens create');
  const made = await database.apiTokens.create({
    name,
    digest: tokenDigest(token),
    scopes,
    createdAt,
    expiresAt,
  });
  if (!made) {
    note(io, `There is a token ${name} already, or there are ${MAX_TOKENS}; revoke one first.`);
    return 1;
  }
  await auditCommand(config.settings, database, 'TOKEN_CREATED', {
    token: name,
    scopes: scopes.join(' '),
    expires: expiresAt === null ? undefined : new Date(expiresAt).toISOString(),
  });
  await (args.has('--json') ? printJson(io, { name, token, scopes, expiresAt }) : print(io, `${token}\n`));
  note(io, 'Keep it: it is not shown again.');
  return 0;
}

/** A number of days from now, or a future time; undefined for anything else. */
function expiryOf(text: string, now: number): number | undefined {
  const [, days] = /^([1-9]\d{0,4})d$/.exec(text) ?? [];
  const at = days === undefined ? parseIsoTime(text, 'Z') : now + Number(days) * DAY;
  return at !== undefined && at > now ? at : undefined;
}

/** `portico tokens list`. Resolves to the exit code. */
const listTokens: Command = {
  usage: {
    topic: 'tokens list',
    words: '[options]',
    about: 'Lists the tokens of the database, with their last use, which is up to a minute old.',
    options: { '--all': 'Includes revoked tokens.', ...JSON_OPTION },
  },
  run: list,
};

async function list(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(listTokens.usage, argv, io);
  await using database = await openExisting(await args.configuration(), 'tokens list');
  const { apiTokens } = database;
  const tokens = await (args.has('--all') ? apiTokens.list() : apiTokens.live());
  if (args.has('--json')) {
    await printJson(
      io,
      tokens.map(({ digest: _, ...token }) => token),
    );
  } else if (tokens.length === 0) {
    note(io, 'There are no tokens.');
  } else {
    const { stdout } = io;
    const width = stdout.isTTY ? stdout.columns : undefined;
    await print(io, `${renderTable(columnsAt(Date.now()), tokens, width).join('\n')}\n`);
  }
  return 0;
}

function columnsAt(now: number): readonly Column<StoredToken>[] {
  const ago = (at: number | null) => (at === null ? '-' : `${formatSpan(now - at)} ago`);
  return [
    { title: 'NAME', text: ({ name }) => name },
    { title: 'SCOPES', text: ({ scopes }) => scopes.join(' '), least: 12 },
    { title: 'MADE', text: ({ createdAt }) => ago(createdAt) },
    { title: 'USED', text: ({ usedAt }) => ago(usedAt) },
    { title: 'ENDS', text: (token) => endOf(token, now) },
  ];
}

function endOf({ expiresAt, revokedAt }: StoredToken, now: number): string {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt === null) return 'never';
  return expiresAt <= now ? 'expired' : new Date(expiresAt).toISOString().slice(0, 10);
}

/** `portico tokens revoke`. Resolves to the exit code: 1 when a name has no token. */
const revokeToken: Command = {
  usage: {
    topic: 'tokens revoke',
    words: '<name...> [options]',
    maxWords: Number.POSITIVE_INFINITY,
    about: 'Revokes tokens by name. Running services refuse them within 5 seconds.',
    options: {},
  },
  run: revoke,
};

async function revoke(argv: readonly string[], io: CommandIo): Promise<number> {
  const args = readArguments(revokeToken.usage, argv, io);
  if (args.words.length === 0) throw args.misuse('Name the token to revoke');
  const config = await args.configuration();
  await using database = await openExisting(config, 'tokens revoke');
  let code = 0;
  for (const name of args.words) {
    const revoked = await database.apiTokens.revoke(name, Date.now());
    if (revoked) await auditCommand(config.settings, database, 'TOKEN_REVOKED', { token: name });
    else code = 1;
    note(
      io,
      revoked
        ? `Revoked ${name}: running services refuse it within 5 seconds.`
        : `There is no token ${name}.`,
    );
  }
  return code;
}

/** The commands of `portico tokens`. */
export const tokenCommands = { create: createToken, list: listTokens, revoke: revokeToken };

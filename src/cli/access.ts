import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { userInfo } from 'node:os';
import { ANONYMOUS, type AuditData, boundedEntry } from '../access/audit.ts';
import { tokenDigest } from '../access/authentication.ts';
import { hashPassword } from '../access/passwords.ts';
import { TOKEN_PREFIX } from '../access/tokens.ts';
import { auditDays } from '../app/audit.ts';
import { knownScopes, SCOPE, unknownScopes } from '../config/options/access.ts';
import { type Settings, settingsOf } from '../config/options/options.ts';
import { formatSpan, parseIsoTime } from '../inbox/delivery.ts';
import { MAX_TOKENS, type StoredToken } from '../sql/access-rows.ts';
import type { Database } from '../sql/database.ts';
import { readArguments, runPart } from './arguments.ts';
import { UsageError } from './command-line.ts';
import { openExisting } from './database.ts';
import { type Column, commandIo, note, print, printJson, readHidden, renderTable } from './terminal.ts';
import { usages } from './usages.ts';

/**
 * `portico tokens <part>`, on the database itself, whether or not a service runs on it. Resolves to the exit
 * code: 0, or 1 when an action failed. Rejects with UsageError, ConfigError, DatabaseOpenError or
 * StoreUnavailableError.
 */
export function tokensCommand(argv: readonly string[]): Promise<number> {
  return runPart('tokens', PARTS, argv);
}

const PARTS = new Map([
  ['create', async () => createToken],
  ['list', async () => listTokens],
  ['revoke', async () => revokeToken],
]);

const DAY = 86_400_000;

/**
 * `portico tokens create`: stores the digest of a new token and prints the token once. Resolves to the exit
 * code.
 */
export async function createToken(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.tokensCreate, argv);
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
    note(`There is a token ${name} already, or there are ${MAX_TOKENS}; revoke one first.`);
    return 1;
  }
  await auditCommand(config.settings, database, 'TOKEN_CREATED', {
    token: name,
    scopes: scopes.join(' '),
    expires: expiresAt === null ? undefined : new Date(expiresAt).toISOString(),
  });
  await (args.has('--json') ? printJson({ name, token, scopes, expiresAt }) : print(`${token}\n`));
  note('Keep it: it is not shown again.');
  return 0;
}

/** A number of days from now, or a future time; undefined for anything else. */
function expiryOf(text: string, now: number): number | undefined {
  const [, days] = /^([1-9]\d{0,4})d$/.exec(text) ?? [];
  const at = days === undefined ? parseIsoTime(text, 'Z') : now + Number(days) * DAY;
  return at !== undefined && at > now ? at : undefined;
}

/** `portico tokens list`. Resolves to the exit code. */
async function listTokens(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.tokensList, argv);
  await using database = await openExisting(await args.configuration(), 'tokens list');
  const { apiTokens } = database;
  const tokens = await (args.has('--all') ? apiTokens.list() : apiTokens.live());
  if (args.has('--json')) {
    await printJson(tokens.map(({ digest: _, ...token }) => token));
  } else if (tokens.length === 0) {
    note('There are no tokens.');
  } else {
    const { stdout } = commandIo();
    const width = stdout.isTTY ? stdout.columns : undefined;
    await print(`${renderTable(columnsAt(Date.now()), tokens, width).join('\n')}\n`);
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
export async function revokeToken(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.tokensRevoke, argv);
  if (args.words.length === 0) throw args.misuse('Name the token to revoke');
  const config = await args.configuration();
  await using database = await openExisting(config, 'tokens revoke');
  let code = 0;
  for (const name of args.words) {
    const revoked = await database.apiTokens.revoke(name, Date.now());
    if (revoked) await auditCommand(config.settings, database, 'TOKEN_REVOKED', { token: name });
    else code = 1;
    note(
      revoked
        ? `Revoked ${name}: running services refuse it within 5 seconds.`
        : `There is no token ${name}.`,
    );
  }
  return code;
}

/**
 * `portico hash-password`: hashes a password that is typed twice on a terminal, or all of standard input.
 * Resolves to the exit code: 0, or 1 when the user cancelled. Rejects with UsageError.
 */
export async function hashPasswordCommand(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.hashPassword, argv);
  if (args.words.length > 0) {
    throw new UsageError([
      'A password must not be an argument, which other users can see; type it when asked, or pipe it to standard input',
    ]);
  }
  const password = commandIo().stdin.isTTY ? await askTwice() : await readAll();
  if (password === undefined) return 1;
  // A Basic header can carry no control characters.
  if (!/^\P{Cc}+$/u.test(password)) {
    throw new UsageError(['A password has at least one character, and no control characters']);
  }
  await print(`${await hashPassword(password, args.has('--argon2id') ? 'argon2id' : 'scrypt')}\n`);
  if (commandIo().stdout.isTTY) note('Put it in single quotes in a shell, because of its $.');
  return 0;
}

async function askTwice(): Promise<string | undefined> {
  const [password, again] = (await readHidden('Password: ', 'Again: ')) ?? [];
  if (again !== password) throw new UsageError(['The passwords differ']);
  return password;
}

async function readAll(): Promise<string> {
  const bytes = Buffer.concat(await commandIo().stdin.toArray());
  if (!isUtf8(bytes)) throw new UsageError(['Standard input is not UTF-8 text']);
  return bytes.toString().replace(/\r?\n$/, '');
}

/** Records what a command has done to the database of a service, if that service keeps an audit log. */
export async function auditCommand(
  settings: Settings,
  { audit }: Pick<Database, 'audit'>,
  type: string,
  data: AuditData,
): Promise<void> {
  if (auditDays(settings) === 0) return;
  const entry = boundedEntry({
    principal: userName(),
    type,
    data: { by: 'command line', ...data },
    isAction: true,
  });
  await audit.append([{ ...entry, at: Date.now() }]);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container the user often has no name.
    return ANONYMOUS;
  }
}

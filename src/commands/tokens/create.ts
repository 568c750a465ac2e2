import { randomBytes } from 'node:crypto';
import { knownScopes, SCOPE, unknownScopes } from '../../config/options/access/api-options.ts';
import { settingsOf } from '../../config/options/options.ts';
import { MAX_TOKENS } from '../../database/api-tokens.ts';
import { tokenDigest } from '../../http/access/bearer-token.ts';
import { TOKEN_PREFIX } from '../../http/access/stored-tokens.ts';
import { parseIsoTime } from '../../inbox/moment.ts';
import { readArguments } from '../argv/command-arguments.ts';
import { auditCommand } from '../audit-command.ts';
import { usages } from '../help/usages.ts';
import { openExisting } from '../open-existing.ts';
import { note, print, printJson } from '../terminal/output.ts';

const DAY = 86_400_000;

/** `portico tokens create`: stores the digest of a new token and prints the token, once. Resolves to the exit code. */
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
    ...(expiresAt === undefined ? ['--expires needs days like 90d, or a time to come like 2027-01-31'] : []),
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

/** Some days from now on, or a time to come; undefined for all else. */
function expiryOf(text: string, now: number): number | undefined {
  const [, days] = /^([1-9]\d{0,4})d$/.exec(text) ?? [];
  const at = days === undefined ? parseIsoTime(text, 'Z') : now + Number(days) * DAY;
  return at !== undefined && at > now ? at : undefined;
}

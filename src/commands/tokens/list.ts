import type { StoredToken } from '../../database/api-tokens.ts';
import { formatSpan } from '../../inbox/moment.ts';
import { readArguments } from '../argv/command-arguments.ts';
import { type Column, renderTable } from '../deliveries/table.ts';
import { usages } from '../help/usages.ts';
import { openExisting } from '../open-existing.ts';
import { note, print, printJson } from '../terminal/output.ts';

/** `portico tokens list`. Resolves to the exit code. */
export async function listTokens(argv: readonly string[]): Promise<number> {
  const args = readArguments(usages.tokensList, argv);
  await using database = await openExisting(await args.configuration(), 'tokens list');
  const { apiTokens } = database;
  const tokens = await (args.has('--all') ? apiTokens.list() : apiTokens.live());
  if (args.has('--json')) {
    await printJson(tokens.map(({ digest: _, ...token }) => token));
  } else if (tokens.length === 0) {
    note('There are no tokens.');
  } else {
    const width = process.stdout.isTTY ? process.stdout.columns : undefined;
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

import { readArguments } from '../argv/command-arguments.ts';
import { auditCommand } from '../audit-command.ts';
import { usages } from '../help/usages.ts';
import { openExisting } from '../open-existing.ts';
import { note } from '../terminal/output.ts';

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

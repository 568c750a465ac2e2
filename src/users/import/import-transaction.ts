import { EntrySource } from './entry-source.ts';
import { MAX_TRANSACTION } from './import-batch.ts';
import type { BadLine, ImportEntry } from './import-entry.ts';
import { ImportError } from './import-error.ts';
import { ImportBeginning } from './import-position.ts';
import { emailTakenOn, type ImportOutcome, type ImportRequest, isGood } from './import-users.ts';

/**
 * Stores all lines of an import in one transaction, or none. Resolves to the outcomes: of all lines, or of those that
 * were refused. Fails as `importUsers` does, with ImportError too where one transaction would be too large.
 */
export async function importTransaction(request: ImportRequest): Promise<readonly ImportOutcome[]> {
  const { users, position } = request;
  const beginning = position && new ImportBeginning(position);
  const entries = await readEntries(request, beginning);
  const refused = entries.filter((entry): entry is BadLine => !isGood(entry));
  if (refused.length > 0) return refused;
  const good = entries.filter(isGood);
  const last = entries.at(-1)?.line;
  if (last === undefined) return [];
  const mark = position &&
    beginning && { key: position.key, from: position.line, to: last, digest: beginning.extend(entries) };
  const stored = await users.importAll(
    good.map(({ user }) => user),
    mark,
  );
  if ('taken' in stored) return [emailTakenOn(good[stored.taken]?.line ?? last)];
  return good.map(({ line }, i) => ({ line, id: stored.ids[i] ?? 0 }));
}

async function readEntries(
  { chunks, format, maxBytes = Number.POSITIVE_INFINITY }: ImportRequest,
  beginning: ImportBeginning | undefined,
): Promise<readonly ImportEntry[]> {
  const source = new EntrySource(format, Math.min(maxBytes, MAX_TRANSACTION.bytes));
  const entries: ImportEntry[] = [];
  const take = (entry: ImportEntry) => {
    if (beginning?.passes(entry) === true) return;
    if (entries.push(entry) <= MAX_TRANSACTION.users) return;
    const most = MAX_TRANSACTION.users.toLocaleString('en-US');
    throw new ImportError('IMPORT_TOO_LARGE', `One transaction takes at most ${most} users`, entry.line);
  };
  for await (const chunk of chunks) source.push(chunk, take);
  source.end(take);
  beginning?.requireSame();
  return entries;
}

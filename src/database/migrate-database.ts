import { databaseAt } from './database-url.ts';
import { migrateFile, pendingInFile } from './sqlite/migrate-file.ts';
import { opening } from './sqlite/open-failure.ts';

/** Brings the schema of a database up to date; resolves to the applied migrations. Fails with DatabaseOpenError. */
export async function migrateDatabase(url: string): Promise<readonly string[]> {
  const { engine, place } = databaseAt(url);
  if (engine === 'sqlite') return opening(place, () => migrateFile(place));
  const [{ onFirst }, { migrate }] = await postgres();
  return onFirst(place, (connection) => migrate(connection));
}

/** The migrations that were not applied yet; changes nothing. Fails with DatabaseOpenError. */
export async function pendingMigrations(url: string): Promise<readonly string[]> {
  const { engine, place } = databaseAt(url);
  if (engine === 'sqlite') return opening(place, () => pendingInFile(place));
  const [{ onFirst }, { pendingMigrations }] = await postgres();
  return onFirst(place, (connection) => pendingMigrations(connection));
}

/** Imported on demand, so that only users of PostgreSQL load its driver. */
function postgres() {
  return Promise.all([import('./postgres/pool/first-connection.ts'), import('./postgres/migrate.ts')]);
}

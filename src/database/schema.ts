import { engineOf } from './engine-of.ts';
import { migrateFile, pendingInFile } from './sqlite/migrate-file.ts';

/** Brings the schema of a database up to date; resolves to the migrations that ran. Fails with DatabaseOpenError. */
export async function migrateDatabase(url: string): Promise<readonly string[]> {
  const { engine, place } = engineOf(url);
  if (engine === 'sqlite') return migrateFile(place);
  const [{ onFirst }, { migrate }] = await postgres();
  return onFirst(place, (connection) => migrate(connection));
}

/** The migrations that a database has not seen; nothing is written. Fails with DatabaseOpenError. */
export async function pendingMigrations(url: string): Promise<readonly string[]> {
  const { engine, place } = engineOf(url);
  if (engine === 'sqlite') return pendingInFile(place);
  const [{ onFirst }, { pendingMigrations }] = await postgres();
  return onFirst(place, (connection) => pendingMigrations(connection));
}

/** The driver is loaded only by those who need it. */
function postgres() {
  return Promise.all([import('./postgres/pool/first-connection.ts'), import('./postgres/migrate.ts')]);
}

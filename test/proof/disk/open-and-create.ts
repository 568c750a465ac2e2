import { openDatabase } from '../../../src/sql/open.ts';

// Opens the database of the working folder, creates a user and says so: a start as short as it can be.
await using database = await openDatabase('sqlite:portico.db');
database.failed.addEventListener('abort', () => process.exit(1));
await database.users.create({ name: 'created', email: 'a@b' });
process.stdout.write('created');

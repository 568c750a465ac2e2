import { writeSync } from 'node:fs';
import { migrateDatabase } from '../../src/sql/open.ts';

// Migrates a database by the files of a folder, and writes "begins", then what it applied: node migrate-worker.ts <url> <folder>
const [url = '', folder = ''] = process.argv.slice(2);
writeSync(1, 'begins\n');
const applied = await migrateDatabase(url, new URL(folder));
writeSync(1, `${JSON.stringify(applied)}\n`);

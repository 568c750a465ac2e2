import { test } from 'node:test';
import { configurationChecks } from './configuration-checks.ts';

for (const { id, title, clause, run } of configurationChecks) test(`${id} ${title} (${clause})`, run);

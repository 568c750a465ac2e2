import { test } from 'node:test';
import { configurationChecks } from './configuration-checks.ts';

for (const { id, title, heading, run } of configurationChecks) test(`${id} ${title} (${heading})`, run);

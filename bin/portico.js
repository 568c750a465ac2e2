#!/usr/bin/env node
// The one file in JavaScript: a first file in TypeScript would load the compiler, 30 MB of it, before the cache of
// compiled modules is on. The cache is kept in the system's temporary folder and halves the time of the next start.
import { enableCompileCache } from 'node:module';

enableCompileCache();
await import('../src/main.ts');

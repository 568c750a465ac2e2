#!/usr/bin/env node
// The one file in JavaScript: a first file in TypeScript would load the compiler, 30 MB of it, before the cache of
// compiled modules is on. The cache is kept in the system's temporary folder and halves the time of the next start.
// An old Node reads this file too, so it imports nothing that one does not have.
const { node: version } = process.versions;

if (Number.parseInt(version, 10) < 24) {
  process.stderr.write(
    `portico: Portico needs Node 24 or newer, and this is Node ${version} (${process.execPath}).\n`,
  );
  process.exitCode = 1;
} else {
  process.getBuiltinModule('node:module').enableCompileCache();
  const { main } = await import('../src/main.ts');
  process.exitCode = await main(process.argv.slice(2));
}

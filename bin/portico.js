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
  // A look-up of a name blocks a thread of libuv's pool until the system's resolver gives up, and the process cannot
  // end before. So there are more threads than slow names take, and the resolver gives up within a stop's deadline.
  process.env.UV_THREADPOOL_SIZE ??= '16';
  process.env.RES_OPTIONS ??= 'timeout:1 attempts:2';
  process.getBuiltinModule('node:module').enableCompileCache();
  const { main } = await import('../src/main.ts');
  process.exitCode = await main(process.argv.slice(2));
}

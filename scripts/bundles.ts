import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';
import { lazyModules } from './lazy-modules.ts';
import { licenseNotices } from './license-notices.ts';

const shared = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  chunkNames: 'chunks/[name]-[hash]',
  legalComments: 'none',
  logLevel: 'warning',
} as const satisfies esbuild.BuildOptions;

/** Short, because a third of the start is V8 reading it; names stay, for the stacks in bug reports. */
const started = {
  ...shared,
  plugins: [lazyModules],
  minifySyntax: true,
  minifyWhitespace: true,
  define: { 'process.env.NODE_ENV': '"production"' },
} as const satisfies esbuild.BuildOptions;

/**
 * The compilers of route schemas and `inject` of Fastify, which the doors never call (`lazyCompilers`), and what `pg`
 * tries to find; nothing of these is needed to run the command.
 */
const NEVER_LOADED = [
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  'light-my-request',
  'pg-native',
  'pg-cloudflare',
];

/** The program's own, which its SDK has registered with. */
const OPTIONAL_PEERS = ['@opentelemetry/api'];

/** The command's import of the service, which leads to a bundle of its own. */
const serviceApart: esbuild.Plugin = {
  name: 'service-apart',
  setup(build) {
    build.onResolve({ filter: /\/app\/serve\.ts$/ }, () => ({ path: '../service/serve.js', external: true }));
  },
};

/**
 * The command with every package that it needs: a file to start, the rest by need. The service shares no code with the
 * other commands, because it would then be read from some forty files instead of one. Resolves to the licences inside.
 */
export async function bundleCommand(root: string, target: string): Promise<string> {
  const options = {
    ...started,
    absWorkingDir: root,
    splitting: true,
    external: [...NEVER_LOADED, ...OPTIONAL_PEERS],
    metafile: true,
  } as const satisfies esbuild.BuildOptions;
  const bundles = await Promise.all([
    esbuild.build({
      ...options,
      entryPoints: ['bin/portico.js'],
      outdir: join(target, 'bin'),
      plugins: [serviceApart, lazyModules],
    }),
    esbuild.build({
      ...options,
      entryPoints: ['src/app/serve.ts'],
      outdir: join(target, 'bin/service'),
      chunkNames: '[name]-[hash]',
    }),
  ]);
  return licenseNotices(
    root,
    bundles.flatMap(({ metafile }) => Object.keys(metafile.inputs)),
  );
}

/** What runs as threads: the writer, its checkpoints and the reader, isolated handlers, and what copies a database. */
const THREADS = [
  'src/sql/sqlite/reader-thread.ts',
  'src/sql/sqlite-writer/checkpoint-thread.ts',
  'src/sql/sqlite-writer/writer-thread.ts',
  'src/inbox/isolate/handler-thread.ts',
  'src/sql/backup/copy-thread.ts',
];

/** The threads, each in one file, for the command and the library. */
export async function bundleThreads(root: string, target: string): Promise<void> {
  await esbuild.build({
    ...started,
    absWorkingDir: root,
    entryPoints: THREADS,
    outbase: root,
    outdir: target,
  });
}

/** The packages of the workspace are part of the library; where it is installed there are none. */
const workspaceInside: esbuild.Plugin = {
  name: 'workspace-inside',
  setup(build) {
    build.onResolve({ filter: /^@portico\// }, ({ path }) => ({
      path: fileURLToPath(import.meta.resolve(path)),
      sideEffects: false,
    }));
  },
};

/**
 * What other programs import: our code alone. The packages stay imports, because a program shares its own `graphql`
 * and `fastify` with us: GraphQL.js refuses types that another copy of it has made.
 */
export async function bundleLibrary(root: string, target: string, entries: readonly string[]): Promise<void> {
  await esbuild.build({
    ...shared,
    absWorkingDir: root,
    entryPoints: [...entries],
    outbase: root,
    outdir: target,
    chunkNames: 'src/chunks/[name]-[hash]',
    splitting: true,
    packages: 'external',
    plugins: [workspaceInside],
  });
}

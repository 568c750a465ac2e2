import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';
import { lazyModules } from './lazy-modules.ts';
import { licenseNotices } from './license-notices.ts';
import { PARAMETERS } from './service-loader.ts';

const shared = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  chunkNames: 'chunks/[name]-[hash]',
  legalComments: 'none',
  logLevel: 'warning',
} as const satisfies esbuild.BuildOptions;

/**
 * Minified, because V8 spends a third of the start on reading code. Names stay, for stacks in bug reports.
 */
const started = {
  ...shared,
  plugins: [lazyModules],
  minifySyntax: true,
  minifyWhitespace: true,
  define: { 'process.env.NODE_ENV': '"production"' },
} as const satisfies esbuild.BuildOptions;

/**
 * Fastify's compilers of route schemas and `inject`, which the doors never call (`lazyCompilers`), and
 * modules that `pg` only tries to load. The command needs none of these.
 */
const NEVER_LOADED = [
  '@fastify/ajv-compiler',
  '@fastify/fast-json-stringify-compiler',
  'light-my-request',
  'pg-native',
  'pg-cloudflare',
];

/** The program provides these, because its SDK has registered with them. */
const OPTIONAL_PEERS = ['@opentelemetry/api'];

/** Makes the command load the service from its bundle. */
const serviceApart: esbuild.Plugin = {
  name: 'service-apart',
  setup(build) {
    build.onResolve({ filter: /\/app\/serve\.ts$/ }, () => ({ path: 'service', namespace: 'service' }));
    build.onLoad({ filter: /.*/, namespace: 'service' }, () => ({
      contents:
        "import { loadService } from './service-loader.ts'; " +
        "export const { serve } = loadService(new URL('../service/serve.js', import.meta.url)).exports;",
      resolveDir: import.meta.dirname,
    }));
  },
};

/**
 * Bundles the command with every package that it needs: one file to start, the rest on demand. The service
 * shares no code with the other commands: it is one script, which `code-cache.ts` compiles. Resolves to the
 * licences inside.
 */
export async function bundleCommand(root: string, target: string): Promise<string> {
  const options = {
    ...started,
    absWorkingDir: root,
    external: [...NEVER_LOADED, ...OPTIONAL_PEERS],
    metafile: true,
  } as const satisfies esbuild.BuildOptions;
  const bundles = await Promise.all([
    esbuild.build({
      ...options,
      entryPoints: ['bin/portico.js'],
      outdir: join(target, 'bin'),
      splitting: true,
      plugins: [serviceApart, lazyModules],
    }),
    esbuild.build({
      ...options,
      format: 'cjs',
      entryPoints: ['src/app/serve.ts'],
      outdir: join(target, 'bin/service'),
      banner: { js: `(function (${PARAMETERS}) {` },
      footer: { js: '})' },
      define: {
        ...started.define,
        'import.meta.url': 'importMeta.url',
        'import.meta.filename': 'importMeta.filename',
        'import.meta.resolve': 'importMeta.resolve',
      },
    }),
  ]);
  const service = join(target, 'bin/service/serve.js');
  // A script has no `import()` but an experimental one of Node, so the module that loads it lends its own.
  writeFileSync(service, readFileSync(service, 'utf8').replace(/(?<![.#\w])import\(/g, 'importMeta.import('));
  return licenseNotices(
    root,
    bundles.flatMap(({ metafile }) => Object.keys(metafile.inputs)),
  );
}

/**
 * The entries of threads: the writer, its checkpoints and the reader, isolated handlers, and the copier of a
 * database.
 */
const THREADS = [
  'src/sql/sqlite/reader-thread.ts',
  'src/sql/sqlite-writer/checkpoint-thread.ts',
  'src/sql/sqlite-writer/writer-thread.ts',
  'src/inbox/isolate/handler-thread.ts',
  'src/sql/backup/copy-thread.ts',
];

/** Bundles the threads, each into one file, for the command and the library. */
export async function bundleThreads(root: string, target: string): Promise<void> {
  await esbuild.build({
    ...started,
    absWorkingDir: root,
    entryPoints: THREADS,
    outbase: root,
    outdir: target,
  });
}

/** Bundles the workspace's packages into the library, because they are not installed with it. */
const workspaceInside: esbuild.Plugin = {
  name: 'workspace-inside',
  setup(build) {
    build.onResolve({ filter: /^@portico\// }, ({ path }) => ({
      path: fileURLToPath(import.meta.resolve(path)),
      sideEffects: false,
    }));
  },
};

/** The entry that browsers load too: one file, of syntax that they have. */
const CLIENT = './src/client.ts';

/**
 * Bundles the library: only Portico's code. The packages stay imports, because a program must share its
 * `graphql` and `fastify` with Portico: GraphQL.js refuses types made by another copy of itself.
 */
export async function bundleLibrary(root: string, target: string, entries: readonly string[]): Promise<void> {
  const library = { ...shared, absWorkingDir: root, outbase: root, outdir: target } as const;
  await Promise.all([
    esbuild.build({
      ...library,
      entryPoints: entries.filter((entry) => entry !== CLIENT),
      chunkNames: 'src/chunks/[name]-[hash]',
      splitting: true,
      packages: 'external',
      plugins: [workspaceInside],
    }),
    esbuild.build({ ...library, entryPoints: [CLIENT], platform: 'neutral', target: 'es2022' }),
  ]);
}

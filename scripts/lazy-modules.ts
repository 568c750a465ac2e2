import { mkdirSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname } from 'node:path';
import type * as esbuild from 'esbuild';

/**
 * Modules that Fastify, pino and ws require at the top of a file but the doors rarely use; http2 alone takes
 * 11 MB and 25 ms.
 */
const UNTOUCHED = new Set(['http2', 'https', 'semver', 'thread-stream', 'tls', 'zlib']);

/** Modules of Node that sources of the service import but a start does not use: 2 MB. */
const LATE = new Set(['https', 'readline/promises']);

const builtinName = (path: string) => path.replace(/^node:/, '');

/** A module that is loaded at the first access to one of its exports. */
const lazily = (load: string) => `module.exports = new Proxy({}, { get: (_, name) => ${load}[name] });`;

/**
 * What esbuild writes for an import of a CommonJS module: a copy of all exports, for each file that imports it,
 * which evaluates some. Ours is an object that inherits them.
 */
const copied = /__toESM\((require_\w+\(\)),1\)/g;
const inherited = '(exports=>Object.create(exports,{default:{value:exports}}))($1)';

/**
 * Makes a bundle load less. Modules of Node come from `process.getBuiltinModule`, because an `import` reads
 * all exports, and reading those of `node:http` loads a whole client: 14 MB and half of the start time of
 * bare Node. Modules in UNTOUCHED and LATE are loaded at their first use.
 */
export const lazyModules: esbuild.Plugin = {
  name: 'lazy-modules',
  setup(build) {
    build.initialOptions.write = false;
    build.onEnd(({ outputFiles = [] }) => {
      for (const { path, text } of outputFiles) {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, text.replace(copied, inherited), { mode: text.startsWith('#!') ? 0o755 : 0o644 });
      }
    });
    build.onResolve(
      { filter: /^[a-z][\w:/-]*$/ },
      async ({ path, kind, importer, resolveDir, pluginData }) => {
        const deferred =
          kind === 'require-call' && UNTOUCHED.has(builtinName(path)) && pluginData !== lazyModules;
        // A dynamic import is lazy already, and needs named exports; a bundled one would have only a default
        // export.
        if (isBuiltin(path) && kind === 'dynamic-import') {
          return { path: `node:${builtinName(path)}`, external: true };
        }
        if (isBuiltin(path)) {
          return {
            path: builtinName(path),
            namespace: deferred || LATE.has(builtinName(path)) ? 'lazy-builtin' : 'builtin',
            sideEffects: false,
          };
        }
        if (!deferred) return undefined;
        const found = await build.resolve(path, { kind, importer, resolveDir, pluginData: lazyModules });
        return { path: found.path, namespace: 'lazy', errors: found.errors };
      },
    );
    build.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule('node:${path}');`,
    }));
    build.onLoad({ filter: /.*/, namespace: 'lazy-builtin' }, ({ path }) => ({
      contents: lazily(`process.getBuiltinModule('node:${path}')`),
    }));
    build.onLoad({ filter: /.*/, namespace: 'lazy' }, ({ path }) => ({
      contents: lazily(`require(${JSON.stringify(path)})`),
      resolveDir: '/',
    }));
  },
};

import { isBuiltin } from 'node:module';
import type * as esbuild from 'esbuild';

/** What Fastify, pino and ws require at the top of a file and our doors mostly never touch; http2 alone takes 11 MB and 25 ms. */
const UNTOUCHED = new Set(['http2', 'https', 'semver', 'thread-stream', 'tls', 'zlib']);

const builtinName = (path: string) => path.replace(/^node:/, '');

/** A module that is loaded when something of it is used. */
const lazily = (load: string) => `module.exports = new Proxy({}, { get: (_, name) => ${load}[name] });`;

/**
 * Has a bundle load less. A module of Node comes from `process.getBuiltinModule`, because an `import` of one reads all
 * of its exports, and to read those of `node:http` loads a whole client: 14 MB and half of the time that bare Node
 * takes to start. A module in UNTOUCHED is loaded at its first use.
 */
export const lazyModules: esbuild.Plugin = {
  name: 'lazy-modules',
  setup(build) {
    build.onResolve(
      { filter: /^[a-z][\w:/-]*$/ },
      async ({ path, kind, importer, resolveDir, pluginData }) => {
        const deferred =
          kind === 'require-call' && UNTOUCHED.has(builtinName(path)) && pluginData !== lazyModules;
        // Loaded at its first use already, and with names: a bundled one would have a default export alone.
        if (isBuiltin(path) && kind === 'dynamic-import') {
          return { path: `node:${builtinName(path)}`, external: true };
        }
        if (isBuiltin(path)) {
          return {
            path: builtinName(path),
            namespace: deferred ? 'lazy-builtin' : 'builtin',
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

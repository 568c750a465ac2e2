import { fileURLToPath } from 'node:url';

/** A file to be served. */
export interface OutputFile {
  readonly name: string;
  readonly contents: Uint8Array;
}

/** A page with what it loads. */
export interface Bundle {
  readonly files: readonly OutputFile[];
  /** Name of the page's module script. */
  readonly script: string;
  /** Name of the page's style sheet. */
  readonly style: string;
  /** The licences of the packages inside. */
  readonly notices: string;
}

/** A page that is built into a folder of its own below build/. */
export interface Page {
  /** The name of that folder. */
  readonly name: string;
  /** The folder of its sources. */
  readonly folder: string;
  /** The packages that it is made of or by. */
  readonly packages: readonly string[];
  bundle(): Promise<Bundle>;
}

const sources = (folder: string) => fileURLToPath(new URL(`../../src/${folder}/`, import.meta.url));

/** All pages. What bundles them is loaded by need, because it needs the development packages. */
export const PAGES: readonly Page[] = [
  {
    name: 'graphiql',
    folder: sources('graphql/graphiql/page'),
    packages: [
      'esbuild',
      'graphiql',
      'react',
      'react-dom',
      'graphql',
      'graphql-sse',
      'monaco-graphql',
      'monaco-editor',
      '@graphiql/react',
    ],
    async bundle() {
      const { bundleGraphiql } = await import('./graphiql-bundle.ts');
      return bundleGraphiql(this.folder);
    },
  },
  {
    name: 'console',
    folder: sources('management/console/page'),
    packages: ['esbuild', 'react', 'react-dom', 'uplot'],
    async bundle() {
      const { bundleConsole } = await import('./console-bundle.ts');
      return bundleConsole(this.folder);
    },
  },
];

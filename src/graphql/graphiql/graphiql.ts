import type { FastifyPluginCallback } from 'fastify';
import { graphiqlAssets } from './assets.ts';
import { graphiqlPage, type HtmlPage, notBuiltPage } from './html-page.ts';
import { buildDirectory, readManifest } from './manifest.ts';

/** The interactive query tool of the GraphQL door (contract 4.1). */
export interface Graphiql {
  /** False when the tool is not built; the page then says how to build it. */
  readonly built: boolean;
  /** What a browser gets at the door's path. */
  readonly page: HtmlPage;
  /** Serves the page's files at `{path}/assets/{name}`, by GET and HEAD. */
  readonly assets: FastifyPluginCallback;
}

/**
 * Prepares the tool for a door at `path`, such as `/graphql`. It reads one small file; the rest is read
 * when a browser asks. Never fails.
 */
export function openGraphiql(path: string, directory: URL = buildDirectory): Graphiql {
  const manifest = readManifest(directory);
  if (manifest === undefined) {
    return { built: false, page: notBuiltPage(), assets: (_app, _options, done) => done() };
  }
  return {
    built: true,
    page: graphiqlPage(path, manifest),
    assets: graphiqlAssets(path, manifest, directory),
  };
}

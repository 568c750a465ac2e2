import type { FastifyPluginCallback } from 'fastify';
import { builtPage, readManifest } from '../../http/built-page/manifest.ts';
import type { Reply } from '../../http/endpoint.ts';
import { graphiqlAssets } from './assets.ts';
import { graphiqlPage, notBuiltPage } from './html-page.ts';

/** The interactive query tool of the GraphQL door (contract 4.1). */
export interface Graphiql {
  /** The reply to a browser at the door's path; says how to build the tool when it is not built. */
  readonly page: Reply;
  /** Serves the page's files at `{path}/assets/{name}`, by GET and HEAD. */
  readonly assets: FastifyPluginCallback;
}

/**
 * Prepares the tool for a door at `path`, such as `/graphql`. It reads one small file; the rest is read
 * when a browser asks. Never fails.
 */
export function openGraphiql(path: string, directory: URL = builtPage('graphiql')): Graphiql {
  const manifest = readManifest(directory);
  if (manifest === undefined) {
    return { page: notBuiltPage(), assets: (_app, _options, done) => done() };
  }
  return {
    page: graphiqlPage(path, manifest),
    assets: graphiqlAssets(path, manifest, directory),
  };
}

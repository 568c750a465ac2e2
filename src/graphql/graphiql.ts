import { type Reply, replyBudgetOf, send } from '@portico/transport';
import type { FastifyPluginCallback } from 'fastify';
import {
  assetReplies,
  assetsBase,
  builtPage,
  htmlPage,
  type Manifest,
  pageTags,
  readManifest,
} from '../http/pages.ts';

/** The interactive query tool of the GraphQL door (CONTRACT.md#graphql-operations). */
interface Graphiql {
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

/** Serves the built files below `{path}/assets/`. */
function graphiqlAssets(path: string, manifest: Manifest, directory: URL): FastifyPluginCallback {
  const replyTo = assetReplies(manifest, directory);
  const base = path.endsWith('/') ? path : `${path}/`;

  return (app, _options, done) => {
    // Only before the start can an application get a bound that it does not have.
    replyBudgetOf(app);
    app.route<{ Params: { name: string } }>({
      method: ['GET', 'HEAD'],
      url: `${base}assets/:name`,
      handler: async (request, reply) => {
        const found = await replyTo(request.params.name, request);
        return found === undefined ? reply.callNotFound() : send(reply, found);
      },
    });
    done();
  };
}

const PAGE = {
  title: 'Portico GraphQL',
  colour: '#d60590',
  policy: [
    "script-src 'self'",
    "worker-src 'self'",
    // Monaco writes style elements and attributes at run time.
    "style-src 'self' 'unsafe-inline'",
    "font-src 'self'",
  ],
} as const;

/** The page with GraphiQL for a door at `path`. */
function graphiqlPage(path: string, manifest: Manifest): Reply {
  const content = `<div id="graphiql"><p class="notice">Loading the query tool…</p></div>
<noscript><p class="notice">The query tool needs JavaScript. Queries also work by POST to this URL.</p></noscript>
`;
  return htmlPage({ ...PAGE, head: pageTags(assetsBase(path), manifest), content });
}

/** The page instead of GraphiQL while it is not built. */
function notBuiltPage(): Reply {
  const content = `<h1>Portico GraphQL</h1>
<p>The query tool is not built. Run <code>npm run build:pages</code> in Portico's folder and start again.</p>
<p>Queries work without it: send them by POST to this URL as <code>application/json</code>.</p>
`;
  const head = '<style>body { margin: 3rem; font: 1rem/1.6 system-ui, sans-serif }</style>\n';
  return htmlPage({ ...PAGE, head, content });
}

import { assetsBase, htmlPage, pageTags } from '../../http/built-page/html-page.ts';
import type { Manifest } from '../../http/built-page/manifest.ts';
import type { Reply } from '../../http/endpoint.ts';

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
export function graphiqlPage(path: string, manifest: Manifest): Reply {
  const content = `<div id="graphiql"><p class="notice">Loading the query tool…</p></div>
<noscript><p class="notice">The query tool needs JavaScript. Queries also work by POST to this URL.</p></noscript>
`;
  return htmlPage({ ...PAGE, head: pageTags(assetsBase(path), manifest), content });
}

/** The page instead of GraphiQL while it is not built. */
export function notBuiltPage(): Reply {
  const content = `<h1>Portico GraphQL</h1>
<p>The query tool is not built. Run <code>npm run build:pages</code> in Portico's folder and start again.</p>
<p>Queries work without it: send them by POST to this URL as <code>application/json</code>.</p>
`;
  const head = '<style>body { margin: 3rem; font: 1rem/1.6 system-ui, sans-serif }</style>\n';
  return htmlPage({ ...PAGE, head, content });
}

import { htmlPage, pageTags } from '../../http/built-page/html-page.ts';
import type { Manifest } from '../../http/built-page/manifest.ts';
import type { Reply } from '../../http/endpoint.ts';

const PAGE = {
  title: 'Portico: APIs',
  colour: '#2f6f4f',
  // Swagger UI writes style attributes at run time.
  policy: ["script-src 'self'", "style-src 'self' 'unsafe-inline'"],
} as const;

/** The page for the path `.../docs`; its files are below that, relative to its own URL. */
export function docsPage(manifest: Manifest): Reply {
  return htmlPage({
    ...PAGE,
    head: pageTags('./docs/', manifest),
    content: `<div id="docs" data-spec="./docs/openapi"><p class="notice">Loading the reference…</p></div>
<noscript><p class="notice">This page needs JavaScript. The document is at <a href="./docs/openapi">docs/openapi</a>.</p></noscript>
`,
  });
}

/** The page while it is not built. */
export function notBuiltPage(): Reply {
  return htmlPage({
    ...PAGE,
    head: '',
    content: `<h1>Portico: APIs</h1>
<p>This page is not built. Run <code>npm run build:pages</code> in Portico's folder and start again.</p>
<p>The document itself is at <a href="./docs/openapi">docs/openapi</a>.</p>
`,
  });
}

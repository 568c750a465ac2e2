import { htmlDocument } from '../../http/built-page/html-document.ts';
import type { Manifest } from '../../http/built-page/manifest.ts';
import type { Reply } from '../../http/endpoint.ts';
import { COMMON_HEADERS } from '../replies.ts';

/** Swagger UI writes style attributes at run time, hence 'unsafe-inline' for styles alone; its icons are data URLs. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers = {
  ...COMMON_HEADERS,
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
} as const;

/** The page for the path `.../docs`; its files are below that, relative to its own URL. */
export function docsPage(manifest: Manifest): Reply {
  return htmlReply(
    `<link rel="stylesheet" href="./docs/${manifest.style}">
<script type="module" src="./docs/${manifest.script}"></script>
`,
    `<div id="docs" data-spec="./docs/openapi"><p class="notice">Loading the reference…</p></div>
<noscript><p class="notice">This page needs JavaScript. The document is at <a href="./docs/openapi">docs/openapi</a>.</p></noscript>
`,
  );
}

/** The page while it is not built. */
export function notBuiltPage(): Reply {
  return htmlReply(
    '',
    `<h1>Portico: APIs</h1>
<p>This page is not built. Run <code>npm run build:pages</code> in Portico's folder and start again.</p>
<p>The document itself is at <a href="./docs/openapi">docs/openapi</a>.</p>
`,
  );
}

function htmlReply(head: string, content: string): Reply {
  const body = htmlDocument('Portico: APIs', head, content);
  return { status: 200, type: 'text/html; charset=utf-8', body, headers };
}

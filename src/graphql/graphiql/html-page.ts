import { htmlDocument } from '../../http/built-page/html-document.ts';
import type { Manifest } from '../../http/built-page/manifest.ts';
import type { Reply } from '../../http/endpoint.ts';

/** Monaco writes style elements and attributes at run time, hence 'unsafe-inline' for styles alone. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "font-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers = {
  'content-security-policy': contentSecurityPolicy,
  'cache-control': 'no-store',
  // The same URL answers with JSON to clients that ask for JSON.
  vary: 'accept',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const;

const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E" +
  "%3Crect width='32' height='32' rx='8' fill='%23d60590'/%3E" +
  "%3Cpath d='M8 25V16a8 8 0 0 1 16 0v9M13 25v-8a3 3 0 0 1 6 0v8' fill='none' stroke='white' " +
  "stroke-width='2.6' stroke-linecap='round'/%3E%3C/svg%3E";

function htmlReply(head: string, content: string): Reply {
  const scheme = '<meta name="color-scheme" content="light dark">\n';
  const body = htmlDocument('Portico GraphQL', scheme + head, content, icon);
  return { status: 200, type: 'text/html; charset=utf-8', body, headers };
}

/**
 * Where the page finds its files, relative to its own URL: so it also works behind a proxy that adds a
 * prefix. `/graphql` gives `./graphql/assets/`.
 */
function assetsBase(path: string): string {
  const lastSegment = path.slice(path.lastIndexOf('/') + 1);
  return lastSegment === '' ? './assets/' : `./${encodeURIComponent(lastSegment)}/assets/`;
}

/** The page with GraphiQL for a door at `path`. */
export function graphiqlPage(path: string, manifest: Manifest): Reply {
  const base = assetsBase(path);
  const head = `<link rel="stylesheet" href="${base}${manifest.style}">
<script type="module" src="${base}${manifest.script}"></script>
`;
  const body = `<div id="graphiql"><p class="notice">Loading the query tool…</p></div>
<noscript><p class="notice">The query tool needs JavaScript. Queries also work by POST to this URL.</p></noscript>
`;
  return htmlReply(head, body);
}

/** The page instead of GraphiQL while it is not built. */
export function notBuiltPage(): Reply {
  const body = `<h1>Portico GraphQL</h1>
<p>The query tool is not built. Run <code>npm run build:pages</code> in Portico's folder and start again.</p>
<p>Queries work without it: send them by POST to this URL as <code>application/json</code>.</p>
`;
  const head = '<style>body { margin: 3rem; font: 1rem/1.6 system-ui, sans-serif }</style>\n';
  return htmlReply(head, body);
}

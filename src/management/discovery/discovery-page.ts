import { createHash } from 'node:crypto';
import type { Reply } from '../../http/endpoint.ts';
import type { Exposed } from '../access/exposure.ts';
import type { Build } from '../endpoints/info.ts';
import { NEGOTIATED_HEADERS } from '../replies.ts';

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8dce2, #3a404a); --soft: light-dark(#5a6470, #a0a9b6);
  --link: light-dark(#0b57b0, #8ab8ff); }
body { margin: 0 auto; max-width: 46rem; padding: 3rem 1.25rem; font: 1rem/1.6 system-ui, sans-serif;
  background: light-dark(#fff, #16191e); color: light-dark(#1b1f24, #e6e9ee); }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.3; }
p { margin: .25rem 0 1.75rem; color: var(--soft); }
dl { margin: 0; }
dt { padding-top: .8rem; border-top: 1px solid var(--line); }
dd { margin: 0 0 .8rem; color: var(--soft); }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
code, a { font-family: ui-monospace, monospace; font-size: .95rem; overflow-wrap: anywhere; }
code { color: var(--soft); }
`;

/** Allows the page's own style and nothing else. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  ...NEGOTIATED_HEADERS,
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
} as const;

/** The page at the base path for browsers: every endpoint with one line about it. */
export function discoveryPage(
  prefix: string,
  endpoints: readonly Exposed[],
  { name, version }: Build,
): Reply {
  // Relative to the page's own URL, so that they also work behind a proxy that adds a prefix.
  const base = `.${prefix.slice(prefix.lastIndexOf('/'))}`;
  const items = endpoints.map((endpoint) => item(endpoint, base, prefix)).join('');
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(name)} management</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeHtml(name)} ${escapeHtml(version)}</h1>
<p>Management endpoints. Programs get these links as JSON from the same address.</p>
<dl>
${items}</dl>
</body>
</html>
`;
  return { status: 200, type: 'text/html; charset=utf-8', body: html, headers: HEADERS };
}

/** Whether a path holds a placeholder, so that no link can lead there. */
export function isTemplate(path: string): boolean {
  return path.includes('{');
}

function item({ about, routes }: Exposed, base: string, prefix: string): string {
  const shown = Object.entries(routes).map(([path, { get }]) => {
    const text = escapeHtml(prefix + path);
    if (get === undefined) return `<code>POST ${text}</code>`;
    return isTemplate(path) ? `<code>${text}</code>` : `<a href="${escapeHtml(base + path)}">${text}</a>`;
  });
  return `<dt>${shown.join('<br>')}</dt>\n<dd>${escapeHtml(about)}</dd>\n`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => ENTITIES[sign] ?? sign);
}

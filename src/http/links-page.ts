import { createHash } from 'node:crypto';
import { htmlDocument } from './built-page/html-document.ts';
import type { Reply } from './endpoint.ts';

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
  vary: 'accept',
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
} as const;

/** Something that a page leads to. */
export interface Linked {
  /** Its paths; without `href` one is shown as code, because no link can lead there. */
  readonly paths: readonly { readonly text: string; readonly href?: string | undefined }[];
  readonly about: string;
}

/** A page for browsers that says what is where; it loads nothing. Pure. */
export function linksPage(title: string, about: string, items: readonly Linked[]): Reply {
  const content = `<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(about)}</p>
<dl>
${items.map(itemOf).join('')}</dl>
`;
  const body = htmlDocument(escapeHtml(title), `<style>${STYLE}</style>\n`, content);
  return { status: 200, type: 'text/html; charset=utf-8', body, headers: HEADERS };
}

function itemOf({ paths, about }: Linked): string {
  const shown = paths.map(({ text, href }) => {
    const label = escapeHtml(text);
    return href === undefined ? `<code>${label}</code>` : `<a href="${escapeHtml(href)}">${label}</a>`;
  });
  return `<dt>${shown.join('<br>')}</dt>\n<dd>${escapeHtml(about)}</dd>\n`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => ENTITIES[sign] ?? sign);
}

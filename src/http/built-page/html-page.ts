import type { Reply } from '../endpoint.ts';
import { htmlDocument } from './html-document.ts';
import type { Manifest } from './manifest.ts';

/** What differs between the pages of the package. */
export interface HtmlPage {
  readonly title: string;
  /** The colour of the icon, such as `#d60590`. */
  readonly colour: string;
  /** Directives beside those of every page, such as `"style-src 'self'"`. */
  readonly policy: readonly string[];
  readonly head: string;
  /** HTML; nothing from outside. */
  readonly content: string;
}

/** What holds for every page: nothing from elsewhere, no frames around it, no form that leads away. */
const POLICY = [
  "default-src 'none'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

/** An HTML page of the package. */
export function htmlPage({ title, colour, policy, head, content }: HtmlPage): Reply {
  const scheme = '<meta name="color-scheme" content="light dark">\n';
  const body = htmlDocument(title, scheme + head, content, icon(colour));
  const headers = {
    'content-security-policy': [...POLICY, ...policy].join('; '),
    'cache-control': 'no-store',
    // The same URL may answer with JSON to clients that ask for JSON.
    vary: 'accept',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  };
  return { status: 200, type: 'text/html; charset=utf-8', body, headers };
}

/** The tags that load a built page, whose files are below `base`. */
export function pageTags(base: string, { script, style }: Manifest): string {
  return `<link rel="stylesheet" href="${base}${style}">
<script type="module" src="${base}${script}"></script>
`;
}

/**
 * Where the files of the page at `path` are, relative to its own URL, so that it also works behind a proxy that adds a
 * prefix: `/graphql` gives `./graphql/assets/`.
 */
export function assetsBase(path: string): string {
  const lastSegment = path.slice(path.lastIndexOf('/') + 1);
  return lastSegment === '' ? './assets/' : `./${encodeURIComponent(lastSegment)}/assets/`;
}

function icon(colour: string): string {
  return (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E" +
    `%3Crect width='32' height='32' rx='8' fill='${encodeURIComponent(colour)}'/%3E` +
    "%3Cpath d='M8 25V16a8 8 0 0 1 16 0v9M13 25v-8a3 3 0 0 1 6 0v8' fill='none' stroke='white' " +
    "stroke-width='2.6' stroke-linecap='round'/%3E%3C/svg%3E"
  );
}

import { createHash } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { addEndpoint, type Reply } from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { parseWeightedList, prefersHtml } from '../core/negotiation.ts';
import { PACKAGE_ROOT } from '../core/package-root.ts';

/** Headers of every file. The file name contains a hash of the content, so caches never go stale. */
const headers = {
  'cache-control': 'public, max-age=31536000, immutable',
  vary: 'accept-encoding',
  'x-content-type-options': 'nosniff',
  // A worker is subject to the policy of its script; Portico's workers need no network access.
  'content-security-policy': "default-src 'none'",
} as const;

/** Answers with a file of a page by its name; undefined if there is no such file. */
type AssetReply = (
  name: string,
  request: { readonly method: string; readonly headers: Readonly<IncomingHttpHeaders> },
) => Promise<Reply | undefined>;

/**
 * Serves the built files of a page. Files are streamed from disk and not kept in memory, because browsers cache them. A
 * compressed file is decompressed for the rare client that does not accept gzip.
 */
export function assetReplies(manifest: Manifest, directory: URL): AssetReply {
  const files = new Map<string, BuiltFile>(Object.entries(manifest.files));
  return async (name, request) => {
    // Only names from the manifest are served, so no request can reach outside the folder.
    const file = files.get(name);
    if (file === undefined) return undefined;
    const stored = new URL(storedName(name, file), directory);
    const stats = await stat(stored).catch(() => undefined);
    if (stats === undefined) return undefined;
    const isCoded = file.isCompressed && acceptsGzip(request.headers['accept-encoding']);
    return {
      status: 200,
      type: file.contentType,
      body: request.method === 'HEAD' ? '' : contentOf(stored, file.isCompressed && !isCoded),
      headers: {
        ...headers,
        'content-length': String(isCoded ? stats.size : file.size),
        ...(isCoded ? { 'content-encoding': 'gzip' } : {}),
      },
    };
  };
}

function contentOf(stored: URL, decompresses: boolean): Readable {
  const content = createReadStream(stored);
  // The reply ends with the error that its stream is destroyed with.
  return decompresses ? pipeline(content, createGunzip(), () => {}) : content;
}

/** The name under which a file is stored. */
export function storedName(name: string, { isCompressed }: Pick<BuiltFile, 'isCompressed'>): string {
  return isCompressed ? `${name}.gz` : name;
}

/** Whether a client accepts gzip, and prefers nothing to it (RFC 9110 12.5.3). */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  const weights = new Map(parseWeightedList(acceptEncoding).map(({ name, weight }) => [name, weight]));
  const weight = weights.get('gzip') ?? weights.get('*') ?? 0;
  return weight > 0 && weight >= (weights.get('identity') ?? 0);
}

/**
 * An HTML document in English. `head` and `content` are HTML. The icon is a URL; by default the browser
 * requests none.
 */
function htmlDocument(title: string, head: string, content: string, icon = 'data:,'): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="${icon}">
${head}</head>
<body>
${content}</body>
</html>
`;
}

/** The parts in which the pages differ. */
interface HtmlPage {
  readonly title: string;
  /** Directives in addition to those of every page, such as `"style-src 'self'"`. */
  readonly policy: readonly string[];
  readonly head: string;
  /** HTML without untrusted text. */
  readonly content: string;
}

/** Directives of every page: no external resources, no framing, no forms. */
const PAGE_POLICY = [
  "default-src 'none'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

/** The icon of all pages: the arch of a portico. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E" +
  "%3Crect width='32' height='32' rx='8' fill='%233451d1'/%3E" +
  "%3Cpath d='M8 25V16a8 8 0 0 1 16 0v9M13 25v-8a3 3 0 0 1 6 0v8' fill='none' stroke='white' " +
  "stroke-width='2.6' stroke-linecap='round'/%3E%3C/svg%3E";

/** An HTML page of the package. */
export function htmlPage({ title, policy, head, content }: HtmlPage): Reply {
  const scheme = '<meta name="color-scheme" content="light dark">\n';
  const body = htmlDocument(title, scheme + head, content, ICON);
  const headers = {
    'content-security-policy': [...PAGE_POLICY, ...policy].join('; '),
    'cache-control': 'no-store',
    // The same URL answers with JSON if the client asks for it.
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
 * The URL of the files of the page at `path`, relative to the page's URL so that it also works behind a proxy
 * that adds a prefix: `/graphql` gives `./graphql/assets/`.
 */
export function assetsBase(path: string): string {
  const lastSegment = path.slice(path.lastIndexOf('/') + 1);
  return lastSegment === '' ? './assets/' : `./${encodeURIComponent(lastSegment)}/assets/`;
}

/** A file of a built page. */
export interface BuiltFile {
  readonly contentType: string;
  /** In bytes, not compressed. */
  readonly size: number;
  /** Whether it is stored with gzip alone. */
  readonly isCompressed: boolean;
}

/** The content of `manifest.json`, which `npm run build:pages` writes. */
export interface Manifest {
  /** Fingerprint of all inputs of the build. */
  readonly inputs: string;
  /** File name of the page's module script. */
  readonly script: string;
  /** File name of the page's style sheet. */
  readonly style: string;
  /** Every served file by its name. */
  readonly files: Readonly<Record<string, BuiltFile>>;
}

/** The folder of a built page. */
export function builtPage(name: string): URL {
  return new URL(`build/${name}/`, PACKAGE_ROOT);
}

function isManifest(value: unknown): value is Manifest {
  return (
    typeof value === 'object' &&
    value !== null &&
    'script' in value &&
    'style' in value &&
    'files' in value &&
    typeof value.files === 'object'
  );
}

/** Reads the manifest of a build; undefined if `directory` has no complete build. */
export function readManifest(directory: URL): Manifest | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(new URL('manifest.json', directory), 'utf8'));
    return isManifest(manifest) ? manifest : undefined;
  } catch {
    // The service runs without its pages; without a build, each page shows how to build it.
    return undefined;
  }
}

/** The front page of a door. */
interface FrontPage {
  readonly title: string;
  readonly about: string;
  /** Descriptions of the door's paths. */
  readonly paths: Readonly<Record<string, string>>;
  /** Whether browsers can follow the paths; false if these accept POST only. Default true. */
  readonly linked?: boolean;
}

const JSON_TYPE = 'application/json';

/** Answers at the root of a door, with a page for browsers and JSON for programs. */
export function addFrontPage(app: FastifyInstance, { title, about, paths, linked = true }: FrontPage): void {
  const items = Object.entries(paths).map(
    // Relative to the page's own URL, so that they also work behind a proxy that adds a prefix.
    ([path, what]): Linked => ({
      paths: [linked ? { text: path, href: `.${path}` } : { text: `POST ${path}` }],
      about: what,
    }),
  );
  const page = linksPage(title, about, items);
  const json = { status: 200, type: JSON_TYPE, body: JSON.stringify({ title, about, paths }) };
  const forPrograms = { ...json, headers: { vary: 'accept' } };
  addEndpoint(app, 'GET', '/', {
    bodyLimit: 0,
    handle: ({ headers }) => (prefersHtml(headers.accept, [JSON_TYPE]) ? page : forPrograms),
  });
}

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

/** Allows only the page's own style. */
const LINKS_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  vary: 'accept',
  'content-security-policy': LINKS_POLICY,
  'referrer-policy': 'no-referrer',
} as const;

/** An entry of a page of links. */
export interface Linked {
  /** The paths; one without `href` is shown as code, since it cannot be linked. */
  readonly paths: readonly { readonly text: string; readonly href?: string | undefined }[];
  readonly about: string;
}

/** A page that lists links with descriptions; it loads nothing. Pure. */
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

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => ENTITIES[sign] ?? sign);
}

import type { Reply } from '../../http/endpoint.ts';
import { type Linked, linksPage } from '../../http/links-page.ts';
import type { Exposed } from '../access/exposure.ts';
import type { Build } from '../endpoints/info.ts';
import { NEGOTIATED_HEADERS } from '../replies.ts';

/** A page for people below the base path. */
export interface PageLink {
  readonly path: string;
  readonly about: string;
}

/** The page at the base path for browsers: every endpoint with one line about it. */
export function discoveryPage(
  prefix: string,
  endpoints: readonly Exposed[],
  { name, version }: Build,
  pages: readonly PageLink[] = [],
): Reply {
  // Relative to the page's own URL, so that they also work behind a proxy that adds a prefix.
  const base = `.${prefix.slice(prefix.lastIndexOf('/'))}`;
  const page = linksPage(
    `${name} ${version}`,
    'Management endpoints. Programs get these links as JSON from the same address.',
    [
      ...pages.map(({ path, about }) => ({ paths: [{ text: prefix + path, href: base + path }], about })),
      ...endpoints.map((endpoint) => linked(endpoint, base, prefix)),
    ],
  );
  return { ...page, headers: { ...NEGOTIATED_HEADERS, ...page.headers } };
}

/** Whether a path holds a placeholder, so that no link can lead there. */
export function isTemplate(path: string): boolean {
  return path.includes('{');
}

function linked({ about, routes }: Exposed, base: string, prefix: string): Linked {
  const paths = Object.entries(routes).map(([path, { get }]) => {
    const text = prefix + path;
    if (get === undefined) return { text: `POST ${text}` };
    return { text, href: isTemplate(path) ? undefined : base + path };
  });
  return { paths, about };
}

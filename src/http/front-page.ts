import type { FastifyInstance } from 'fastify';
import { prefersHtml } from './accept.ts';
import { addEndpoint } from './add-endpoint.ts';
import { type Linked, linksPage } from './links-page.ts';

/** What a door says of itself to whoever opens its address. */
export interface FrontPage {
  readonly title: string;
  readonly about: string;
  /** What is behind the door, by path. */
  readonly paths: Readonly<Record<string, string>>;
  /** False where a browser cannot follow the paths, which take POST alone; default true. */
  readonly linked?: boolean;
}

const JSON_TYPE = 'application/json';

/** Answers at the root of a door: browsers with a page, programs with the same as JSON. */
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

import type { Reply } from '../../http/endpoint.ts';
import { linksPage } from '../../http/links-page.ts';
import { htmlPage, pageTags } from '../../http/page/html-page.ts';
import type { Manifest } from '../../http/page/manifest.ts';

/** The page of the console, or how to build it. */
export function consolePage(manifest: Manifest | undefined): Reply {
  if (manifest === undefined) {
    return refusalPage('The console is not built. Run "npm run build:console" and start again.', 200);
  }
  return htmlPage({
    title: 'Portico console',
    colour: '#3451d1',
    policy: ["script-src 'self'", "style-src 'self'"],
    head: pageTags('/console', manifest),
    content: '<div id="console"></div>\n<noscript><p>The console needs JavaScript.</p></noscript>\n',
  });
}

/** What a browser gets instead of the console. */
export function refusalPage(why: string, status = 403): Reply {
  const page = linksPage('Portico console', `${why}.`, []);
  return { ...page, status, headers: { ...page.headers, 'cache-control': 'no-store' } };
}

import { assetsBase, htmlPage, pageTags } from '../../http/built-page/html-page.ts';
import type { Manifest } from '../../http/built-page/manifest.ts';
import type { Reply } from '../../http/endpoint.ts';
import { linksPage } from '../../http/links-page.ts';

/** The page of the console, or how to build it. */
export function consolePage(manifest: Manifest | undefined): Reply {
  if (manifest === undefined) {
    return refusalPage('The console is not built. Run "npm run build:pages" and start again.', 200);
  }
  return htmlPage({
    title: 'Portico console',
    colour: '#3451d1',
    policy: ["script-src 'self'", "style-src 'self'"],
    head: pageTags(assetsBase('/console'), manifest),
    content:
      '<div id="console"><p class="boot">Opening the console…</p></div>\n<noscript><p>The console needs JavaScript.</p></noscript>\n',
  });
}

/** What a browser gets instead of the console. */
export function refusalPage(why: string, status = 403): Reply {
  const page = linksPage('Portico console', `${why}.`, []);
  return { ...page, status, headers: { ...page.headers, 'cache-control': 'no-store' } };
}

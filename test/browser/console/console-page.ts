import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import type { TestService } from '../../support/service.ts';
import { openPage, root } from '../support.ts';
import { VISITOR } from './demo.ts';

const AXE = readFileSync(join(root, 'node_modules/axe-core/axe.min.js'), 'utf8');

export const WIDE = { width: 1280, height: 860 };
export const PHONE = { width: 390, height: 844 };
export const NARROW = { width: 360, height: 740 };

export async function buildConsole(): Promise<void> {
  await promisify(execFile)(process.execPath, ['scripts/build-pages.ts'], { cwd: root });
}

/** An open console, and what has gone wrong in it so far. */
export type Console = Awaited<ReturnType<typeof openConsole>>;

/** The console of a service, at one of its pages. */
export async function openConsole(browser: Browser, service: Pick<TestService, 'urls'>, page = 'overview') {
  const context = await browser.newContext({
    viewport: WIDE,
    reducedMotion: 'reduce',
    httpCredentials: VISITOR,
  });
  const url = `${service.urls.management}/actuator/console`;
  const opened = await openPage(context, `${url}#/${page}`);
  await opened.page.locator('h1').waitFor();
  return { ...opened, url, [Symbol.asyncDispose]: () => context.close() };
}

/** Goes to another page of the console. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${path}`)}`);
}

/** What axe-core finds wrong, one line for each; of some rules or of all. */
export async function accessibilityProblems(
  page: Page,
  rules?: readonly string[],
): Promise<readonly string[]> {
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: rules }) };
  await page.evaluate(`window.axe ?? (() => { ${AXE} })()`);
  return page.evaluate<
    readonly string[]
  >(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, any }) => id + ': ' + html.slice(0, 160) + ' ' + (any[0]?.message ?? ''))))`);
}

/** Whether the page is wider than its window, and what is. */
export function tooWide(page: Page): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(`(() => {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    return [...document.querySelectorAll('main *')]
      .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && each.closest('.table, .log, pre') === null)
      .map((each) => each.tagName + '.' + each.className).slice(0, 5);
  })()`);
}

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import type { TestService } from '../../support/service.ts';
import { launchBrowser, skip, until } from '../support.ts';
import {
  accessibilityProblems,
  buildConsole,
  type Console,
  goTo,
  NARROW,
  openConsole,
  tooWide,
  WIDE,
} from './console-page.ts';
import { fill, startDemo } from './demo.ts';

/** Each page, and what has to be on it. */
const PAGES: Readonly<Record<string, readonly [title: string, content: string]>> = {
  overview: ['Overview', '.plot canvas'],
  deliveries: ['Deliveries', 'tbody tr'],
  users: ['Users', 'tbody tr'],
  requests: ['Requests', 'tbody tr'],
  loggers: ['Loggers', 'tbody select'],
  log: ['Log', '.log-line'],
  'metrics/http.server.requests': ['Metrics', '.plot canvas'],
  environment: ['Environment', 'tbody tr'],
  threads: ['Threads', '.stack li'],
};

describe('the pages of the console', { skip, timeout: 240_000 }, () => {
  let browser: Browser;
  let service: TestService;
  let shared: Console;

  before(async () => {
    await buildConsole();
    service = await startDemo();
    await fill(service);
    browser = await launchBrowser();
    shared = await openConsole(browser, service);
  });
  after(async () => {
    await browser?.close();
    await service?.[Symbol.asyncDispose]();
  });

  for (const [path, [title, content]] of Object.entries(PAGES)) {
    it(`${title}, in light and dark, wide and narrow`, async () => {
      const { page, troubles } = shared;
      await goTo(page, path);
      for (const [colorScheme, size] of [
        ['light', WIDE],
        ['dark', WIDE],
        ['dark', NARROW],
        ['light', NARROW],
      ] as const) {
        const look = `${colorScheme} at ${size.width}`;
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(size);
        await page.getByRole('heading', { level: 1, name: title }).waitFor();
        await page.locator(content).first().waitFor();
        assert.deepEqual(await tooWide(page), [], look);
        const rules = { light: undefined, dark: ['color-contrast'] }[colorScheme];
        if (size === WIDE) assert.deepEqual(await accessibilityProblems(page, rules), [], look);
      }
      assert.match(await page.title(), new RegExp(title));
      assert.deepEqual(troubles.splice(0), []);
    });
  }

  it('one delivery, and the forms of its body', async () => {
    const { page, troubles } = shared;
    await page.setViewportSize(WIDE);
    await goTo(page, 'deliveries');
    await page.locator('tbody a').first().click();
    await page.getByRole('heading', { level: 1, name: 'newsletter_opened' }).waitFor();
    await page.getByText('Nothing handles this event').waitFor();
    await page.locator('.json-text', { hasText: '"autumn"' }).waitFor();
    await page.getByRole('button', { name: 'Bytes' }).click();
    await page.getByText('000000  7b 22 65').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.setViewportSize(NARROW);
    assert.deepEqual(await tooWide(page), []);
    assert.deepEqual(troubles, []);
  });

  it('works with the keyboard alone', async () => {
    await using console = await openConsole(browser, service, 'overview');
    const { page } = console;
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the page');
    for (let i = 0; i < 2; i++) await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Deliveries');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Deliveries' }).waitFor();
  });

  it('the arrow keys read all plots at the same moment', async () => {
    const { page } = shared;
    await page.setViewportSize(WIDE);
    await goTo(page, 'overview');
    const times = page.locator('.plot .u-legend .u-series:first-child .u-value');
    await page.locator('.plot').first().focus();
    await until(
      page,
      `(() => {
      const plot = document.querySelector('.plot');
      plot.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));
      return document.querySelector('.plot .u-legend .u-series:first-child .u-value').textContent !== '';
    })()`,
    );
    const shown = new Set(await times.allTextContents());
    assert.equal(shown.size, 1, [...shown].join());
  });

  it('is shown within its first moments, and small', async () => {
    const context = await browser.newContext({ viewport: WIDE });
    const page = await context.newPage();
    const sizes: number[] = [];
    page.on('response', async (response) => {
      if (response.url().includes('/assets/'))
        sizes.push(Number(await response.headerValue('content-length')));
    });
    await page.goto(`${service.urls.management}/actuator/console`);
    await page.locator('h1').waitFor();
    await context.close();
    const total = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(sizes.length === 2 && total < 150_000, `${sizes}`);
  });

  it('has a page for what it does not know, and a menu on a phone', async () => {
    const { page } = shared;
    await page.setViewportSize(NARROW);
    await page.getByRole('button', { name: 'Pages' }).click();
    await page.getByRole('link', { name: 'Loggers' }).click();
    await page.getByRole('heading', { level: 1, name: 'Loggers' }).waitFor();
    await page.getByRole('link', { name: 'Deliveries' }).waitFor({ state: 'hidden' });
    await goTo(page, 'nowhere');
    await page.getByText('There is no such page').waitFor();
  });
});

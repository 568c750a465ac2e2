// Makes the pictures of docs/CONSOLE.md with Chromium. The service and its deliveries are real; the plots are drawn from
// a made-up day, because nobody wants to wait for one.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { buildConsole, openConsole } from '../test/browser/console/console-page.ts';
import { fill, startDemo } from '../test/browser/console/demo.ts';
import { launchBrowser } from '../test/browser/support.ts';
import type { TestService } from '../test/support/service.ts';

const ROOT = join(import.meta.dirname, '..');
const IMAGES = join(ROOT, 'docs/images');
const NARROW = { width: 360, height: 740 };

interface Shot {
  readonly name: string;
  readonly page: string;
  readonly scheme?: 'light' | 'dark';
  readonly narrow?: boolean;
  readonly height?: number;
  /** What has to be seen, and done, first. */
  readonly ready: (page: Page) => Promise<void>;
}

const seen = (selector: string) => async (page: Page) => page.locator(selector).first().waitFor();

const SHOTS: readonly Shot[] = [
  { name: 'overview', page: 'overview', height: 1_100, ready: hovered },
  { name: 'overview-dark', page: 'overview', scheme: 'dark', height: 1_100, ready: hovered },
  { name: 'overview-phone', page: 'overview', narrow: true, ready: seen('.components li') },
  { name: 'deliveries', page: 'deliveries', ready: seen('tbody tr') },
  {
    name: 'delivery',
    page: 'deliveries?status=dead',
    async ready(page) {
      await page.locator('tbody a').first().click();
      await page.locator('.json-text').first().waitFor();
    },
  },
  {
    name: 'replay',
    page: 'deliveries?status=dead',
    scheme: 'dark',
    async ready(page) {
      await page.getByRole('button', { name: 'Replay all matching' }).click();
      await page.getByRole('button', { name: /^Replay \d deliver/ }).waitFor();
    },
  },
  {
    name: 'test-delivery',
    page: 'deliveries',
    async ready(page) {
      await page.getByRole('button', { name: 'Send a test delivery' }).click();
      await page.locator('option[value=github]').waitFor({ state: 'attached' });
      await page.locator('dialog select').selectOption('github');
      await page.getByRole('button', { name: 'Send', exact: true }).click();
      await page.getByText('Answered 200').waitFor();
    },
  },
  { name: 'users', page: 'users', ready: seen('tbody tr') },
  { name: 'requests', page: 'requests', ready: seen('tbody tr') },
  { name: 'loggers', page: 'loggers', scheme: 'dark', ready: seen('tbody tr') },
  { name: 'log', page: 'log', scheme: 'dark', ready: seen('.log-line') },
  { name: 'metrics', page: 'metrics/http.server.requests?split=door', ready: drawn },
  { name: 'environment', page: 'environment', ready: seen('tbody tr') },
  { name: 'threads', page: 'threads', ready: seen('.stack li') },
];

/** Some readings, two seconds apart, while the doors are used. */
async function drawn(page: Page): Promise<void> {
  await page.locator('.plot canvas').first().waitFor();
  for (let i = 0; i < 60; i++) {
    await page.waitForTimeout(400);
    await Promise.all(Array.from({ length: 3 + ((i * 7) % 11) }, () => fetch(`${service.urls.rest}/users`)));
    await fetch(`${service.urls.graphql}/graphql?query={hello}`);
  }
}

async function hovered(page: Page): Promise<void> {
  await page.locator('.plot canvas').first().waitFor();
  await page
    .locator('.plot .u-over')
    .nth(3)
    .hover({ position: { x: 150, y: 40 } });
}

async function shoot(browser: Browser, service: TestService, shot: Shot): Promise<void> {
  await using console = await openConsole(browser, service, 'requests');
  const { page } = console;
  await page.route('**/api/history?*', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: madeUp(await response.json()) });
  });
  // Whose machine made the picture is of no interest.
  await page.route('**/api/threaddump', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replaceAll(ROOT, '/srv/portico') });
  });
  await page.route('**/api/about', async (route) => {
    const response = await route.fetch();
    const about = await response.json();
    await route.fulfill({ response, json: { ...about, process: { ...about.process, host: 'shop-1' } } });
  });
  await page.emulateMedia({ colorScheme: shot.scheme ?? 'light', reducedMotion: 'reduce' });
  await page.setViewportSize(shot.narrow === true ? NARROW : { width: 1280, height: shot.height ?? 860 });
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${shot.page}`)}`);
  await page.reload();
  await shot.ready(page);
  await page.screenshot({ path: join(IMAGES, `console-${shot.name}.png`) });
}

interface Read {
  readonly interval: number;
  readonly columns: Readonly<Record<string, { readonly unit: string }>>;
}

/** Fifteen minutes with a deployment in the middle. */
function madeUp(read: Read): unknown {
  const count = 300;
  const now = Date.now();
  const times = Array.from({ length: count }, (_, i) => now - (count - i) * read.interval);
  const columns = Object.entries(read.columns).map(([name, column], number) => {
    const values = times.map((_, i) => level(name, i / count, wave(i, number)));
    return [name, { ...column, values }] as const;
  });
  return { ...read, times, columns: Object.fromEntries(columns) };
}

/** From 0 to 1, the same for each run. */
function wave(i: number, number: number): number {
  const slow = Math.sin(i / 31 + number) * 0.5;
  const fast = Math.sin(i * 1.7 + number * 3) * 0.14 + Math.sin(i * 0.61 + number) * 0.12;
  return Math.min(1, Math.max(0, 0.5 + slow * 0.55 + fast));
}

function level(name: string, at: number, w: number): number {
  const busy = at > 0.55 && at < 0.7 ? 2.2 : 1;
  const levels: Readonly<Record<string, number>> = {
    'graphql.requests': (180 + 90 * w) * busy,
    'rest.requests': (340 + 160 * w) * busy,
    'webhook.requests': 40 + 70 * w,
    'management.requests': 0.5 + 0.3 * w,
    'rest.errors': at > 0.56 && at < 0.6 ? 0.04 * w : 0,
    'graphql.p50': 0.5 + 0.4 * w,
    'rest.p50': 0.3 + 0.2 * w,
    'webhook.p50': 1.1 + 0.7 * w,
    'management.p50': 0.8 + 0.3 * w,
    'graphql.p99': (3 + 4 * w) * busy,
    'rest.p99': (2 + 3 * w) * busy,
    'webhook.p99': 4 + 6 * w,
    'management.p99': 2 + 2 * w,
    'eventloop.p99': (1 + 3 * w) * busy,
    'eventloop.max': (4 + 9 * w) * busy,
    'eventloop.utilization': (0.2 + 0.2 * w) * busy,
    'process.cpu': (0.3 + 0.25 * w) * busy,
    'process.memory': 142e6 + 9e6 * w,
    'process.heap': 38e6 + 14e6 * w,
    'database.commits': (60 + 50 * w) * busy,
    'database.batch': 1 + 1.6 * w * busy,
    'database.commit': 0.8 + 0.9 * w,
    'inbox.received': 40 + 70 * w,
    'inbox.open': at > 0.56 && at < 0.74 ? 160 * w : 3 * w,
    'inbox.age': at > 0.56 && at < 0.74 ? 9 * w : 0.2 * w,
    'inbox.dead': 2,
  };
  return levels[name] ?? 0;
}

mkdirSync(IMAGES, { recursive: true });
await buildConsole();
await using service = await startDemo();
await fill(service);
const browser = await launchBrowser();
try {
  for (const shot of SHOTS) await shoot(browser, service, shot);
} finally {
  await browser.close();
}

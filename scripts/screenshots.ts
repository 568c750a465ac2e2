// Takes the screenshots of the README and the guides with Chromium. The service and its deliveries are real.
// To avoid waiting, the plots show a made-up quarter of an hour, and the deliveries' times are spread over
// minutes. An argument names another folder.
import { mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { openConsole } from '../test/browser/console/console-page.ts';
import { Stage } from '../test/browser/console/stage.ts';
import { HOSTILE, PortalStage } from '../test/browser/portal/stage.ts';
import { openPage, queryEditor, runQuery } from '../test/browser/support.ts';
import type { TestService } from '../test/support/service.ts';
import { madeUp } from './made-up-history.ts';

const ROOT = join(import.meta.dirname, '..');
const IMAGES = resolve(process.argv[2] ?? join(ROOT, 'docs/images'));
/** Milliseconds. */
const UPTIME = 321_000_000;
const NARROW = { width: 360, height: 740 };
const WIDE = { width: 1280, height: 860 };

interface Shot {
  readonly name: string;
  /** The page of the console. */
  readonly page: string;
  readonly scheme?: 'light' | 'dark';
  readonly narrow?: boolean;
  readonly height?: number;
  /** Waits for the page's content, and prepares it. */
  readonly ready: (page: Page) => Promise<void>;
}

/** Suppresses live samples, which would not fit the made-up history. */
const NO_SAMPLES = `
  const listen = EventSource.prototype.addEventListener;
  EventSource.prototype.addEventListener = function (name, ...rest) {
    if (name !== 'samples') listen.call(this, name, ...rest);
  };`;

const seen = (selector: string) => async (page: Page) => page.locator(selector).first().waitFor();

const SHOTS: readonly Shot[] = [
  { name: 'overview', page: 'overview', height: 1_020, ready: hovered },
  { name: 'overview-dark', page: 'overview', scheme: 'dark', height: 1_020, ready: hovered },
  { name: 'overview-phone', page: 'overview', narrow: true, ready: seen('.plot canvas') },
  { name: 'deliveries-dark', page: 'deliveries', scheme: 'dark', ready: seen('tbody tr') },
  {
    name: 'delivery',
    page: 'deliveries?event=invoice_sent',
    async ready(page) {
      await page.locator('tbody a').first().click();
      await page.locator('.json-text').first().waitFor();
    },
  },
];

async function hovered(page: Page): Promise<void> {
  await page.locator('.plot canvas').first().waitFor();
  await page
    .locator('.plot .u-over')
    .first()
    .hover({ position: { x: 150, y: 40 } });
  await page.evaluate('scrollTo(0, 0)');
}

async function shoot(browser: Browser, service: TestService, shot: Shot): Promise<void> {
  await using console = await openConsole(browser, service, 'requests');
  const { page } = console;
  await rewrite(page, 'history?*', madeUp);
  await rewrite(page, 'deliveries?*', overMinutes);
  await page.addInitScript(NO_SAMPLES);
  // Replaces the name of the machine.
  await rewrite(page, 'about', (about) => {
    const startedAt = new Date(Date.now() - UPTIME).toISOString();
    return { ...about, user: null, process: { ...about.process, host: 'shop-1', startedAt } };
  });
  await rewrite(page, 'deliveries/*', (delivery) =>
    JSON.parse(JSON.stringify(delivery).replaceAll(`"process":"${hostname()}:`, '"process":"shop-1:')),
  );
  await page.emulateMedia({ colorScheme: shot.scheme ?? 'light', reducedMotion: 'reduce' });
  await page.setViewportSize(shot.narrow === true ? NARROW : { ...WIDE, height: shot.height ?? WIDE.height });
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${shot.page}`)}`);
  await page.reload();
  await shot.ready(page);
  await save(page, `console-${shot.name}`);
}

// biome-ignore lint/suspicious/noExplicitAny: the answer of any endpoint.
type Json = any;

/** Changes the answer of a console endpoint. */
async function rewrite(page: Page, path: string, change: (given: Json) => unknown): Promise<void> {
  await page.route(`**/console/api/${path}`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: change(await response.json()) });
  });
}

function overMinutes(list: Json): unknown {
  const items = list.items.map((item: Json, i: number) => {
    const receivedAt = new Date(Date.parse(item.receivedAt) - (i * 41 + ((i * i * 7) % 29)) * 1_000);
    return { ...item, receivedAt: receivedAt.toISOString() };
  });
  return { ...list, items };
}

interface PortalShot extends Omit<Shot, 'page'> {
  page(stage: PortalStage): string;
}

/** The pages of the portal. */
const PORTAL_SHOTS: readonly PortalShot[] = [
  { name: 'endpoints', page: () => 'endpoints', height: 420, ready: seen('tbody tr') },
  {
    name: 'endpoint',
    page: ({ failing }) => `endpoints/${failing}`,
    height: 920,
    async ready(page) {
      await page.locator('.plot canvas').waitFor();
      await page.locator('.error-cell').first().waitFor();
    },
  },
  {
    name: 'delivery-dark',
    page: ({ failing }) => `endpoints/${failing}`,
    scheme: 'dark',
    height: 620,
    async ready(page) {
      await page.getByRole('region', { name: 'Deliveries' }).locator('tbody a').first().click();
      await page.locator('.timeline .attempt').nth(1).waitFor();
      await page.locator('.json-text').first().waitFor();
    },
  },
  { name: 'event-types', page: () => 'event-types', height: 420, ready: seen('tbody tr') },
];

/** The endpoints of customers, in the portal and in the console. */
async function shootEndpoints(stage: PortalStage): Promise<void> {
  for (const shot of PORTAL_SHOTS) {
    await using portal = await stage.enter();
    const { page } = portal;
    await retold(page, stage, /\/api\/(?:endpoints|events|event-types)/);
    await resize(page, shot);
    await page.evaluate(`location.hash = ${JSON.stringify(`#/${shot.page(stage)}`)}`);
    await page.reload();
    await shot.ready(page);
    await save(page, `portal-${shot.name}`);
  }
  await using console = await openConsole(stage.browser, stage.sending.service, 'requests');
  const { page } = console;
  await retold(page, stage, /\/api\/webhookendpoints/);
  await rewrite(page, 'about', (about) => ({ ...about, process: { ...about.process, host: 'shop-1' } }));
  await resize(page, { height: 560 });
  await page.evaluate("location.hash = '#/endpoints'");
  await page.reload();
  await page.locator('tbody tr').first().waitFor();
  await page.locator('.tab-count').first().waitFor();
  await save(page, 'console-endpoints');
}

async function resize(
  page: Page,
  { scheme = 'light', height = WIDE.height }: Pick<Shot, 'scheme' | 'height'>,
) {
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
  await page.setViewportSize({ ...WIDE, height });
}

/** Shows addresses and texts as a customer has them, instead of those of tests. */
async function retold(page: Page, { receiver }: PortalStage, path: RegExp): Promise<void> {
  await page.route(path, async (route) => {
    const response = await route.fetch();
    const description = route.request().url().includes('/event-types')
      ? 'A customer signed up.'
      : 'The ledger';
    const text = (await response.text())
      .replaceAll(receiver.url, 'https://acme.example')
      .replaceAll(JSON.stringify(HOSTILE).slice(1, -1), description);
    await route.fulfill({ response, body: text });
  });
}

async function shootGraphiql(browser: Browser, service: TestService): Promise<void> {
  const context = await browser.newContext({ viewport: WIDE, colorScheme: 'light', reducedMotion: 'reduce' });
  const { page } = await openPage(context, `${service.urls.graphql}/graphql`);
  await page.locator(queryEditor).waitFor();
  await runQuery(page);
  await save(page, 'graphiql');
  await context.close();
}

/** Saves as WebP, which takes a third of a PNG's size; Playwright cannot write it. */
async function save(page: Page, name: string): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 85 });
  writeFileSync(join(IMAGES, `${name}.webp`), Buffer.from(data, 'base64'));
}

mkdirSync(IMAGES, { recursive: true });
await using stage = new Stage();
await stage.open();
for (const shot of SHOTS) await shoot(stage.browser, stage.service, shot);
await shootGraphiql(stage.browser, stage.service);
await using portal = new PortalStage();
await portal.open();
await shootEndpoints(portal);

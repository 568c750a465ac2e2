import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { accessibilityProblems } from '../console/console-page.ts';
import { skip } from '../support.ts';
import { actionsSuite } from './actions.ts';
import { pagesSuite } from './pages.ts';
import { type PortalPage, PortalStage } from './stage.ts';

/** A page of another origin, which embeds what its query names. */
async function startHost(host: string) {
  const server = createServer((request, response) => {
    const link = new URL(request.url ?? '', 'http://x').searchParams.get('link') ?? '';
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(
      `<!doctype html><title>host</title><iframe src="${link}" width="900" height="600"></iframe>`,
    );
  });
  server.listen(0, host);
  await once(server, 'listening');
  return {
    origin: `http://${host}:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('the portal in Chromium', { skip, timeout: 1_800_000 }, () => {
  const stage = new PortalStage();
  const hosts = new AsyncDisposableStack();
  let portal: PortalPage | undefined;
  let allowed = '';
  let stranger = '';
  before(async () => {
    allowed = hosts.use(await startHost('127.0.0.2')).origin;
    stranger = hosts.use(await startHost('127.0.0.3')).origin;
    await stage.open([allowed]);
    portal = await stage.enter();
  });
  after(async () => {
    await portal?.[Symbol.asyncDispose]();
    await stage[Symbol.asyncDispose]();
    await hosts.disposeAsync();
  });
  const opened = () => {
    if (portal === undefined) throw new Error('The portal is not open.');
    return portal;
  };

  describe('its pages', () => pagesSuite(stage, opened));
  describe('what a customer does', () => actionsSuite(stage, opened));

  it('a link that has expired says so, and how to go on', async () => {
    const context = await stage.browser.newContext();
    const page = await context.newPage();
    const link = await stage.link('acme', 0.0005);
    // Its 30 ms pass while the page loads; a link that is not valid is refused in the same way.
    for (const each of [link, link.replace(/.$/, '-')]) {
      await page.goto('about:blank');
      await page.goto(each);
      await page.getByRole('heading', { name: 'This link has expired' }).waitFor();
      await page.getByText('Ask for a new link').waitFor();
    }
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.reload();
    await page.getByRole('heading', { name: 'This page needs a link' }).waitFor();
    // A new link in the same tab opens it again.
    await page.goto(await stage.link());
    await page.locator('.table tbody tr').first().waitFor();
    await context.close();
  });

  it('a page of an allowed origin embeds it, and one of another origin does not', async () => {
    const context = await stage.browser.newContext();
    const page = await context.newPage();
    await page.goto(`${allowed}/?link=${encodeURIComponent(await stage.link())}`);
    const frame = page.frameLocator('iframe');
    await frame.locator('.table tbody tr').first().waitFor();
    await frame.getByRole('link', { name: '/books' }).click();
    await frame.getByRole('button', { name: 'Send a test event' }).click();
    await frame.getByRole('button', { name: 'Send', exact: true }).click();
    await frame.locator('.timeline .job', { hasText: 'delivered' }).waitFor();
    const refused = page.waitForEvent('console', (message) => message.text().includes('frame-ancestors'));
    const there = page.goto(`${stranger}/?link=${encodeURIComponent(await stage.link())}`);
    await Promise.all([refused, there]);
    assert.equal(await frame.locator('#portal').count(), 0);
    await context.close();
  });
});

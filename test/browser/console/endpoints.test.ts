import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { waitFor } from '../../support/wait-for.ts';
import { HOSTILE, PortalStage } from '../portal/stage.ts';
import { skip, until } from '../support.ts';
import {
  accessibilityProblems,
  type Console,
  goTo,
  openConsole,
  PHONE,
  tooWide,
  WIDE,
} from './console-page.ts';

describe('the endpoints of customers in the console, in Chromium', { skip, timeout: 600_000 }, () => {
  const stage = new PortalStage();
  let shared: Console;
  before(async () => {
    await stage.open();
    shared = await openConsole(stage.browser, stage.sending.service, 'endpoints');
  });
  after(async () => {
    await shared?.[Symbol.asyncDispose]();
    await stage[Symbol.asyncDispose]();
  });

  const row = (page: Page, path: string) =>
    page.locator('.table tbody tr', { hasText: `${stage.receiver.url}${path}` });
  const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true });
  const noTroubles = () => assert.deepEqual(shared.troubles.splice(0), []);

  it('the list, an endpoint and the overview, in light and dark, wide and on a phone', async () => {
    const { page } = shared;
    for (const [path, content] of [
      ['endpoints', 'tbody tr'],
      [`endpoints/${stage.failing}`, '.error-cell'],
      ['overview', '.failing'],
    ] as const) {
      await goTo(page, path);
      for (const [colorScheme, size] of [
        ['light', WIDE],
        ['dark', WIDE],
        ['dark', PHONE],
        ['light', PHONE],
      ] as const) {
        const look = `${path}, ${colorScheme} at ${size.width}`;
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(size);
        await page.locator(content).first().waitFor();
        await waitFor(`a fitting page, ${look}`, async () => (await tooWide(page)).length === 0);
        const rules = { light: undefined, dark: ['color-contrast'] }[colorScheme];
        assert.deepEqual(await accessibilityProblems(page, rules), [], look);
      }
    }
    noTroubles();
  });

  it('what fails comes first, with numbers, and filters by state and tenant stay in the URL', async () => {
    const { page } = shared;
    await page.setViewportSize(WIDE);
    await goTo(page, 'endpoints');
    const tabs = page.getByRole('navigation', { name: 'State' }).getByRole('link');
    await tabs.filter({ hasText: 'all 4' }).waitFor();
    assert.deepEqual(await tabs.allTextContents(), [
      'all 4',
      'disabled for failing 1',
      'failing 1',
      'disabled by hand 0',
      'working 2',
    ]);
    const rows = page.locator('.table tbody tr');
    await rows.nth(3).waitFor();
    const states = (await rows.locator('.status').allTextContents()).join();
    assert.equal(states, 'disabled: it answered 410,failing,working,working');
    await row(page, '/broken').getByText('the receiver answered 503').waitFor();
    await tabs.filter({ hasText: 'disabled for failing' }).click();
    await until(page, "document.querySelectorAll('tbody tr').length === 1");
    assert.equal(await page.evaluate('location.hash'), '#/endpoints?state=disabled');
    await tabs.filter({ hasText: 'all' }).click();
    await page.getByLabel('Tenant').fill('other');
    await button(page, 'Filter').click();
    await tabs.filter({ hasText: 'all 1' }).waitFor();
    await until(page, "document.querySelectorAll('tbody tr').length === 1");
    await row(page, '/foreign').waitFor();
    await page.getByLabel('Tenant').fill('nowhere');
    await button(page, 'Filter').click();
    await page.getByText('No endpoint matches all filters').waitFor();
    noTroubles();
  });

  it('the overview and the navigation say how many were disabled, and lead there', async () => {
    const { page } = shared;
    await goTo(page, 'overview');
    const failing = page.getByRole('region', { name: 'What fails' });
    await failing.getByText('It failed for days or answered 410').waitFor();
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: '1 disabled' }).waitFor();
    await failing.getByRole('link', { name: '1 endpoint was disabled' }).click();
    await row(page, '/gone').waitFor();
    await until(page, "document.querySelectorAll('tbody tr').length === 1");
    noTroubles();
  });

  it('an endpoint shows its last attempts, which lead to their deliveries', async () => {
    const { page } = shared;
    await goTo(page, 'endpoints?state=failing');
    await row(page, '/broken').getByRole('link').first().click();
    const attempts = page.getByRole('region', { name: 'Last attempts' }).locator('tbody tr');
    await attempts.nth(5).waitFor();
    assert.equal(await attempts.count(), 6);
    const outcomes = new Set(await attempts.locator('.status').allTextContents());
    assert.deepEqual([...outcomes].sort(), ['failed permanently', 'failed, retry follows']);
    await page.getByText(HOSTILE).waitFor();
    assert.equal(await page.locator('main img').count(), 0);
    const all = await page.getByRole('link', { name: 'All its deliveries' }).getAttribute('href');
    assert.equal(all, `#/deliveries?target=${encodeURIComponent(`endpoint:acme/${stage.failing}`)}`);
    await attempts.first().getByRole('link').click();
    await page.locator('.timeline', { hasText: `endpoint:acme/${stage.failing}` }).waitFor();
    await goTo(page, (all ?? '').slice(2));
    await page.locator('tbody tr').nth(2).waitFor();
    await goTo(page, 'endpoints/ep_000000000000000000000000');
    await page.getByText('There is no such endpoint').waitFor();
    assert.match(shared.troubles.splice(0).join(), /404/);
  });

  it('an operator disables an endpoint, enables it and one that was disabled for failing, by the keyboard', async () => {
    const { page } = shared;
    await goTo(page, `endpoints/${stage.working}`);
    await button(page, 'Disable').focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('gets no more events').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await button(page, 'Disable').click();
    await dialog.getByRole('button', { name: 'Disable' }).click();
    await page.getByText('disabled by hand').waitFor();
    await button(page, 'Enable again').focus();
    await page.keyboard.press('Enter');
    await button(page, 'Disable').waitFor();
    await goTo(page, 'endpoints?state=disabled');
    await row(page, '/gone').getByRole('link').first().click();
    await page.getByText('Portico has disabled it').waitFor();
    await button(page, 'Enable again').click();
    await button(page, 'Disable').waitFor();
    await page
      .getByRole('navigation', { name: 'Pages' })
      .getByRole('link', { name: '1 disabled' })
      .waitFor({ state: 'detached' });
    const { items } = (await stage.sending.call('GET', '/webhooks/tenants/acme/endpoints')).body;
    assert.deepEqual(
      items.map(({ enabled }: { enabled: boolean }) => enabled),
      [true, true, true],
    );
    noTroubles();
  });

  it('opens the portal of a tenant in another tab', async () => {
    const { page } = shared;
    await goTo(page, `endpoints/${stage.working}`);
    const opened = page.waitForEvent('popup');
    await button(page, 'Open the portal of acme').click();
    const portal = await opened;
    await portal.getByRole('heading', { level: 1, name: 'Endpoints' }).waitFor();
    await portal.getByText('acme', { exact: true }).waitFor();
    assert.equal(await portal.evaluate('window.opener'), null);
    const own = `request: ${new URL(portal.url()).origin}/`;
    await portal.close();
    assert.deepEqual(
      shared.troubles.splice(0).filter((each) => !each.startsWith(own)),
      [],
    );
  });
});

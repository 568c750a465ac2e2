import assert from 'node:assert/strict';
import { it } from 'node:test';
import { waitFor } from '../../support/wait-for.ts';
import { accessibilityProblems, goTo, PHONE, tooWide, WIDE } from '../console/console-page.ts';
import { HOSTILE, type PortalPage, type PortalStage } from './stage.ts';

/** Each page, and what has to be on it. */
const pagesOf = ({ working, failing }: PortalStage, event: string) =>
  ({
    Endpoints: ['endpoints', '.table tbody tr'],
    'an endpoint that works': [`endpoints/${working}`, '.plot canvas'],
    'an endpoint that fails': [`endpoints/${failing}`, '.plot canvas'],
    'a new endpoint': ['new', 'form'],
    'the form of an endpoint': [`edit/${working}`, 'form'],
    'a delivery': [`delivery/${event}?endpoint=${failing}`, '.timeline .attempt'],
    Events: ['events', '.table tbody tr'],
    'an event': [`events/${event}`, '.table tbody tr'],
    'Event types': ['event-types', '.table tbody tr'],
    'an event type': ['event-types/invoice.paid', '.json'],
  }) as const;

/** The pages as they are. */
export function pagesSuite(stage: PortalStage, portal: () => PortalPage): void {
  it('all pages, in light and dark, wide and on a phone', async () => {
    const { page, troubles } = portal();
    const { items } = (
      await stage.sending.call('GET', `/webhooks/tenants/acme/endpoints/${stage.failing}/events`)
    ).body;
    for (const [name, [path, content]] of Object.entries(pagesOf(stage, items[0].event))) {
      await goTo(page, path);
      for (const [colorScheme, size] of [
        ['light', WIDE],
        ['dark', WIDE],
        ['dark', PHONE],
        ['light', PHONE],
      ] as const) {
        const look = `${name}, ${colorScheme} at ${size.width}`;
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(size);
        await page.locator(content).first().waitFor();
        await waitFor(`a fitting page, ${look}`, async () => (await tooWide(page)).length === 0);
        const rules = { light: undefined, dark: ['color-contrast'] }[colorScheme];
        assert.deepEqual(await accessibilityProblems(page, rules), [], look);
      }
    }
    assert.deepEqual(troubles.splice(0), []);
  });

  it('the token leaves the address bar, and a reload needs no new link', async () => {
    await using entered = await stage.enter();
    const { page, troubles } = entered;
    assert.match(page.url(), /\/#\/endpoints$/);
    await page.reload();
    await page.locator('.table tbody tr').first().waitFor();
    assert.equal(await page.evaluate('history.length'), 2);
    await goTo(page, 'nowhere');
    await page.getByText('There is no such page').waitFor();
    assert.deepEqual(troubles, []);
  });

  it('endpoints have a state in words, and those of other tenants are not there', async () => {
    const { page } = portal();
    await page.setViewportSize(WIDE);
    await goTo(page, 'endpoints');
    const row = (path: string) =>
      page.locator('.table tbody tr', { hasText: `${stage.receiver.url}${path}` });
    await row('/books').getByText('working').waitFor();
    await row('/broken')
      .getByText(/^failing since \d/)
      .waitFor();
    await row('/gone').getByText('disabled: it answered 410 Gone').waitFor();
    assert.equal(await row('/foreign').count(), 0);
    await row('/books').getByText('invoice.paid, customer.*').waitFor();
  });

  it('an endpoint that fails says since when, why, and what to do', async () => {
    const { page, troubles } = portal();
    await goTo(page, `endpoints/${stage.failing}`);
    await page.getByText('Its attempts fail and are repeated').waitFor();
    const health = page.getByRole('region', { name: 'Health' });
    await health.getByText('Of the last 3 events.').waitFor();
    assert.match((await health.locator('ul').textContent()) ?? '', /From .*: 0 delivered, 3 failed\./);
    const rows = page.getByRole('region', { name: 'Deliveries' }).locator('tbody tr');
    await rows.nth(2).waitFor();
    assert.deepEqual(
      await rows.locator('.error-cell').allTextContents(),
      Array(3).fill('the receiver answered 503'),
    );
    await page.getByRole('button', { name: 'Delivered', exact: true }).click();
    await page.getByText('Nothing matches').waitFor();
    await page.getByRole('button', { name: 'Failed', exact: true }).click();
    await rows.first().getByRole('link').click();
    const steps = page.locator('.timeline .attempt');
    await steps.nth(1).waitFor();
    const [first = '', second = ''] = await steps.allTextContents();
    assert.match(
      first,
      /Attempt 1 failed, retry follows503.*the receiver answered 503The ledger is being closed/,
    );
    assert.match(second, /Attempt 2 failed permanently503/);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('texts of tenants and events are texts', async () => {
    const { page, troubles } = portal();
    await goTo(page, 'endpoints');
    await page.locator('.table td', { hasText: HOSTILE }).waitFor();
    await goTo(page, 'event-types');
    await page.locator('.table td', { hasText: HOSTILE }).waitFor();
    await goTo(page, 'events?type=invoice.paid');
    await page.locator('.table tbody a').first().click();
    await page.locator('.json-text', { hasText: JSON.stringify(HOSTILE) }).waitFor();
    assert.notEqual(await page.title(), 'run');
    assert.equal(await page.locator('main img').count(), 0);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('an event type shows its example and schema', async () => {
    const { page } = portal();
    await goTo(page, 'event-types');
    await page.getByRole('link', { name: 'invoice.paid' }).click();
    await page.getByRole('heading', { level: 1, name: 'invoice.paid' }).waitFor();
    await page.getByText('An invoice was paid in full.').waitFor();
    await page.locator('.json-text', { hasText: '"R-2291"' }).waitFor();
    await page.locator('.json-key', { hasText: 'required' }).waitFor();
  });

  it('an older list is a page further', async () => {
    await using entered = await stage.enter('many');
    const { page, troubles } = entered;
    const { id } = await stage.sending.endpoint('many', { url: `${stage.receiver.url}/many` });
    const lines = Array.from({ length: 30 }, (_, data) =>
      JSON.stringify({ tenant: 'many', type: 'a', data }),
    );
    for (const line of lines) await stage.sending.publish(JSON.parse(line));
    await goTo(page, `endpoints/${id}`);
    const rows = page.getByRole('region', { name: 'Deliveries' }).locator('tbody tr');
    await rows.nth(24).waitFor();
    assert.equal(await rows.count(), 25);
    await page.getByRole('button', { name: 'Older' }).click();
    await waitFor('the older ones', async () => (await rows.count()) === 5);
    await page.getByRole('button', { name: 'Newest' }).click();
    await rows.nth(24).waitFor();
    assert.deepEqual(troubles, []);
  });
}

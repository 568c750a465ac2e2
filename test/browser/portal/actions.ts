import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Page } from 'playwright-core';
import { Webhook } from 'standardwebhooks';
import type { Got } from '../../support/receiver.ts';
import { waitFor } from '../../support/wait-for.ts';
import { accessibilityProblems, goTo, WIDE } from '../console/console-page.ts';
import { until } from '../support.ts';
import type { PortalPage, PortalStage } from './stage.ts';

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });

/** Throws unless a request is signed with a secret. */
function verify(secret: string, { body, headers }: Got): void {
  new Webhook(secret).verify(body.toString(), headers as Record<string, string>);
}

/** What a customer does in the portal. */
export function actionsSuite(stage: PortalStage, portal: () => PortalPage): void {
  const shown = async (page: Page) => {
    await button(page, 'Show the secret').click();
    const secrets = page.locator('.secret code');
    await secrets.first().waitFor();
    return secrets.allTextContents();
  };

  it('creates an endpoint, whose test event arrives signed with the secret that it shows', async () => {
    const { page, troubles } = portal();
    await page.setViewportSize(WIDE);
    await goTo(page, 'endpoints');
    await page.getByRole('link', { name: 'Add an endpoint' }).click();
    const form = page.getByRole('form', { name: 'New endpoint' });
    await form.getByLabel('URL').fill('ftp://example.com');
    await button(page, 'Create').click();
    await form.getByText('url must be an http or https URL').waitFor();
    await until(page, "document.activeElement.value === 'ftp://example.com'");
    // The refusal, which a browser notes.
    assert.match(troubles.splice(0).join(), /400/);
    await form.getByLabel('URL').fill(`${stage.receiver.url}/made`);
    await form.getByLabel('Description').fill('Made here');
    await button(page, 'Chosen events').click();
    await button(page, 'Create').click();
    await form.getByText('Choose at least one event type').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await form.getByLabel(/^invoice\.paid/).check();
    await form.getByLabel('Further types and patterns').fill('portico.*');
    await form.getByText('More settings').click();
    await form.getByLabel('Filter').fill('{"amount":');
    await button(page, 'Create').click();
    await form.getByText('This is not JSON').waitFor();
    await form.getByLabel('Filter').fill('{ "amount": { "gt": 100 } }');
    await form.getByLabel('Headers').fill('x-own: yes\nx-other: a:b');
    await form.getByLabel('Rate').fill('100/s');
    await button(page, 'Create').click();
    await heading(page, 'The endpoint is created').waitFor();
    const secret = (await page.locator('.secret code').textContent()) ?? '';
    assert.match(secret, /^whsec_/);
    await page.getByRole('link', { name: 'Go to the endpoint' }).click();
    await heading(page, '/made').waitFor();
    await page.locator('.facts', { hasText: '{"amount":{"gt":100}}' }).waitFor();

    await button(page, 'Send a test event').click();
    await page.getByLabel('Event type').selectOption('invoice.paid');
    await page.locator('dialog .json-text', { hasText: '"R-2291"' }).waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await button(page, 'Send').click();
    await page.locator('.timeline .job', { hasText: 'delivered' }).waitFor();
    const [got] = stage.receiver.at('/made');
    assert.ok(got !== undefined);
    assert.equal(JSON.parse(got.body.toString()).data.invoice, 'R-2291');
    assert.equal(got.headers['x-other'], 'a:b');
    verify(secret, got);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('takes an own secret, and a transformation of the configuration', async () => {
    const { page, troubles } = portal();
    const own = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
    await goTo(page, 'new');
    const form = page.getByRole('form', { name: 'New endpoint' });
    await form.getByLabel('URL').fill(`${stage.receiver.url}/own`);
    await form.getByText('More settings').click();
    const choice = form.getByLabel('Transformation');
    await choice.waitFor();
    assert.deepEqual(await choice.locator('option').allTextContents(), ['None', 'data-only']);
    await choice.selectOption('data-only');
    await form.getByLabel('Signing secret').fill('too-short');
    await button(page, 'Create').click();
    await form.locator('.error-text', { hasText: /^secret / }).waitFor();
    await until(page, "document.activeElement.value === 'too-short'");
    assert.match(troubles.splice(0).join(), /400/);
    assert.deepEqual(await accessibilityProblems(page), []);
    await form.getByLabel('Signing secret').fill(own);
    await button(page, 'Create').click();
    await heading(page, 'The endpoint is created').waitFor();
    assert.equal(await page.locator('.secret code').textContent(), own);
    await page.getByRole('link', { name: 'Go to the endpoint' }).click();
    await page.locator('.facts', { hasText: 'data-only' }).waitFor();
    await button(page, 'Send a test event').click();
    await button(page, 'Send').click();
    await page.locator('.timeline .job', { hasText: 'delivered' }).waitFor();
    const [got] = stage.receiver.at('/own');
    assert.ok(got !== undefined);
    verify(own, got);
    assert.equal(JSON.parse(got.body.toString()).message, 'This is a test event.');

    await page.getByRole('link', { name: 'The endpoint' }).click();
    await page.getByRole('link', { name: 'Edit', exact: true }).click();
    const edit = page.getByRole('form', { name: 'Edit endpoint' });
    assert.equal(await edit.getByLabel('Signing secret').count(), 0, 'a rotation changes it');
    await edit.getByLabel('Transformation').selectOption('');
    await button(page, 'Save').click();
    await page.locator('.facts').waitFor();
    const { items } = (await stage.sending.call('GET', '/webhooks/tenants/acme/endpoints')).body;
    const made = items.find(({ url }: { url: string }) => url.endsWith('/own'));
    assert.equal(made.transform, undefined);
    assert.equal(
      (await stage.sending.call('DELETE', `/webhooks/tenants/acme/endpoints/${made.id}`)).status,
      204,
    );
    assert.deepEqual(troubles.splice(0), []);
  });

  it('offers no transformation if the configuration has none', async () => {
    await using entered = await stage.enter();
    const { page, troubles } = entered;
    await page.route('**/api/me', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), transforms: [] } });
    });
    const answered = page.waitForResponse('**/api/me');
    await page.reload();
    await answered;
    await goTo(page, 'new');
    const form = page.getByRole('form', { name: 'New endpoint' });
    await form.getByText('More settings').click();
    await form.getByLabel('Signing secret').waitFor();
    assert.equal(await form.getByLabel('Transformation').count(), 0);
    assert.deepEqual(troubles, []);
  });

  it('edits it: what is emptied is removed', async () => {
    const { page, troubles } = portal();
    await goTo(page, 'endpoints');
    await page.getByRole('link', { name: '/made' }).click();
    await page.getByRole('link', { name: 'Edit', exact: true }).click();
    const form = page.getByRole('form', { name: 'Edit endpoint' });
    assert.equal(await form.getByLabel('Headers').inputValue(), 'x-own: yes\nx-other: a:b');
    assert.equal(await form.getByLabel(/^invoice\.paid/).isChecked(), true);
    assert.equal(await form.getByLabel('Further types and patterns').inputValue(), 'portico.*');
    await form.getByLabel('Filter').fill('');
    await form.getByLabel('Description').fill('Edited here');
    await form.getByLabel(/^invoice\.sent/).check();
    await form.getByLabel('Rate').fill('many');
    await button(page, 'Save').click();
    await form.getByText('must be like "10/s"').waitFor();
    assert.match(troubles.splice(0).join(), /400/);
    await form.getByLabel('Rate').fill('');
    await button(page, 'Save').click();
    await page.getByText('Edited here').waitFor();
    const { items } = (await stage.sending.call('GET', '/webhooks/tenants/acme/endpoints')).body;
    const { types, filter, rate, headers } = items.at(-1);
    assert.deepEqual(types, ['invoice.paid', 'invoice.sent', 'portico.*']);
    assert.deepEqual([filter, rate, headers], [undefined, undefined, { 'x-own': 'yes', 'x-other': 'a:b' }]);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('rotates the secret: for a time both sign', async () => {
    const { page, troubles } = portal();
    await goTo(page, `endpoints/${stage.working}`);
    const [before = ''] = await shown(page);
    await button(page, 'Rotate the secret').click();
    await page.getByText('each request has a signature of both').waitFor();
    await page.getByLabel('The previous secret ends').selectOption('1');
    assert.deepEqual(await accessibilityProblems(page), []);
    await button(page, 'Rotate').click();
    await page.getByText('The current one.').waitFor();
    const [after = '', previous] = await page.locator('.secret code').allTextContents();
    assert.notEqual(after, before);
    assert.equal(previous, before);
    const count = stage.receiver.at('/books').length;
    await button(page, 'Send a test event').click();
    await button(page, 'Send').click();
    await page.locator('.timeline .job', { hasText: 'delivered' }).waitFor();
    const got = stage.receiver.at('/books')[count];
    assert.ok(got !== undefined);
    verify(before, got);
    verify(after, got);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('sends an event again', async () => {
    const { page, troubles } = portal();
    await goTo(page, `endpoints/${stage.working}?status=done`);
    await page
      .getByRole('region', { name: 'Deliveries' })
      .getByRole('link', { name: 'invoice.paid' })
      .first()
      .click();
    await page.locator('.timeline .attempt').first().waitFor();
    const count = stage.receiver.at('/books').length;
    await button(page, 'Send again').click();
    await page.locator('.timeline .replayed', { hasText: 'Sent again' }).waitFor();
    await page.locator('.timeline .attempt').nth(1).waitFor();
    assert.equal(stage.receiver.at('/books').length, count + 1);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('replays the events from before the endpoint was added, and says how many', async () => {
    const { page, troubles } = portal();
    const sent = () => stage.receiver.at('/books').filter(({ body }) => body.toString().includes('"R-1"'));
    assert.equal(sent().length, 0);
    await goTo(page, `endpoints/${stage.working}`);
    await button(page, 'Replay events').click();
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.getByLabel('Only these event types').fill('invoice.paid');
    await button(page, 'Replay').click();
    await page.getByText(/events examined, [1-9]\d* to be sent\. The replay is complete/).waitFor();
    await button(page, 'Close').click();
    await waitFor('the event from before', () => sent().length === 1);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('stops a replay', async () => {
    const { page, troubles } = portal();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let asked = 0;
    await page.route('**/replay', async (route) => {
      asked++;
      await held;
      await route.continue();
    });
    await goTo(page, `endpoints/${stage.working}`);
    await button(page, 'Replay events').click();
    await button(page, 'Replay').click();
    await waitFor('the first request', () => asked === 1);
    await button(page, 'Stop').click();
    release();
    await page.getByText('Stopped: what was added is sent').waitFor();
    assert.equal(asked, 1);
    await button(page, 'Close').click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.unroute('**/replay');
    assert.deepEqual(troubles.splice(0), []);
  });

  it('disables, enables and deletes an endpoint', async () => {
    const { page, troubles } = portal();
    await goTo(page, 'endpoints');
    await page.getByRole('link', { name: '/made' }).click();
    await button(page, 'Disable').click();
    await page.getByText('It gets no events. Enable it').waitFor();
    assert.equal(await button(page, 'Send a test event').isDisabled(), true);
    assert.deepEqual(await accessibilityProblems(page), []);
    const count = stage.receiver.at('/made').length;
    await stage.sending.publish({ tenant: 'acme', type: 'invoice.sent', data: {} });
    await button(page, 'Enable').click();
    await page.getByText('working').waitFor();
    await stage.sending.publish({ tenant: 'acme', type: 'invoice.sent', data: { second: true } });
    await waitFor('the second event', () => stage.receiver.at('/made').length > count);
    assert.match(stage.receiver.at('/made')[count]?.body.toString() ?? '', /second/);
    await button(page, 'Delete').click();
    await page.getByText('gets no more events, also none that wait').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await button(page, 'Delete').click();
    await page.locator('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('The endpoint is deleted').waitFor();
    await page.getByRole('link', { name: '/made' }).waitFor({ state: 'detached' });
    assert.deepEqual(troubles.splice(0), []);
  });

  it('works with the keyboard alone', async () => {
    await using entered = await stage.enter();
    const { page } = entered;
    const focused =
      "(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent)";
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(focused), 'Skip to the page');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate('document.activeElement.id'), 'main');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(focused), 'Add an endpoint');
    await page.keyboard.press('Enter');
    await heading(page, 'New endpoint').waitFor();
    await page.getByLabel('URL').focus();
    await page.keyboard.type(`${stage.receiver.url}/typed`);
    await page.keyboard.press('Enter');
    await heading(page, 'The endpoint is created').waitFor();
    const link = page.getByRole('link', { name: 'Go to the endpoint' });
    await link.focus();
    await page.keyboard.press('Enter');
    await button(page, 'Send a test event').focus();
    await page.keyboard.press('Enter');
    await page.locator('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.equal(await page.evaluate(focused), 'Send a test event');
  });
}

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { it } from 'node:test';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { until } from '../support.ts';
import { accessibilityProblems, goTo } from './console-page.ts';
import { AS_VISITOR, deliver } from './demo.ts';
import type { Stage } from './stage.ts';

const tab = (page: Page, status: string) =>
  page.getByRole('navigation', { name: 'Status' }).getByRole('link', { name: status });

const rows = (page: Page, text: string) => page.locator('tbody tr', { hasText: text });

/** What a person does in the console, on the shared service. */
export function actionsSuite(stage: Stage): void {
  it('deliveries come by themselves, unless the list is paused', async () => {
    const { page, troubles } = stage.shared;
    await goTo(page, 'deliveries');
    await rows(page, 'newsletter_opened').first().waitFor();
    await deliver(stage.service, 'came_alone', {});
    await rows(page, 'came_alone').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await deliver(stage.service, 'came_paused', {});
    await page.getByText('The list has changed since').waitFor();
    assert.equal(await rows(page, 'came_paused').count(), 0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await deliver(stage.service, 'came_later', {});
    await rows(page, 'came_paused').waitFor();
    assert.deepEqual(troubles.splice(0), []);
  });

  it('filters live in the URL', async () => {
    const { page } = stage.shared;
    await goTo(page, 'deliveries');
    await tab(page, 'dead').click();
    await page.getByLabel('Text in the body').fill('cus_990');
    await page.getByRole('button', { name: 'Filter' }).click();
    await until(page, "location.hash === '#/deliveries?status=dead&text=cus_990'");
    await until(page, "document.querySelectorAll('tbody tr').length === 1");
    await page.reload();
    await until(page, "document.querySelectorAll('tbody tr').length === 1");
    assert.equal(await page.getByLabel('Text in the body').inputValue(), 'cus_990');
    await page.getByLabel('Before').fill('2001-02-03T04:05');
    await page.getByText('Nothing matches').waitFor();
    assert.match(page.url(), /until=2001-02-0/);
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('Event').fill('none_such');
    await page.keyboard.press('Enter');
    await page.getByText('Nothing matches').waitFor();
  });

  it('replays all that match, with their number before and what became of them after', async () => {
    const { page, troubles } = stage.shared;
    await goTo(page, 'deliveries?status=dead');
    await page.getByRole('button', { name: 'Replay all matching' }).click();
    await page.getByText('2 deliveries can be replayed: 2 dead.').waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.getByRole('button', { name: 'Replay 2 deliveries' }).click();
    await page.getByText('2 of 2 replayed.').waitFor();
    await page.locator('dialog').getByRole('button', { name: 'Close' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(troubles.splice(0), []);
  });

  it('says which of many failed, and why', async () => {
    const { page } = stage.shared;
    await goTo(page, 'deliveries?event=newsletter_opened');
    await page.getByRole('button', { name: 'Replay all matching' }).click();
    await page.getByRole('button', { name: 'Replay 1 delivery' }).click();
    await page.getByText('0 of 1 replayed, 1 failed.').waitFor();
    await page.locator('.failures', { hasText: 'Nothing handles this delivery now' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    // The refusal, which a browser notes.
    assert.match(stage.shared.troubles.splice(0).join(), /409/);
  });

  it('replays and discards one', async () => {
    const { page } = stage.shared;
    await goTo(page, 'deliveries?event=new_commit');
    await page.locator('tbody a').first().click();
    await page.getByText('1 attempt', { exact: false }).first().waitFor();
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await page.getByText('1 delivery can be replayed: 1 done.').waitFor();
    await page.getByText('One has ended as it should').waitFor();
    // Enter submits a dialog without fields.
    await page.keyboard.press('Enter');
    await page.getByText('1 of 1 replayed.').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.timeline .replayed').waitFor();
    await page.locator('.timeline .attempt').nth(1).waitFor();
    assert.doesNotMatch((await page.locator('.timeline').textContent()) ?? '', /took 0/);
    await goTo(page, 'deliveries?status=dead');
    const discard = page.getByRole('button', { name: /^Discard 0/ }).first();
    const name = await discard.getAttribute('aria-label');
    await discard.click();
    await page.locator('.toast', { hasText: 'Discarded' }).waitFor();
    await goTo(page, 'deliveries?status=discarded');
    await page.locator('tbody a', { hasText: String(name).slice(8, 26) }).waitFor();
  });

  it('counts by status in tabs, and acts on the ticked ones, asking first with their numbers', async () => {
    const { page, troubles } = stage.shared;
    await goTo(page, 'deliveries');
    await deliver(stage.service, 'payment_received', { amount: 2_000 });
    await deliver(stage.service, 'ticked_one', {});
    await rows(page, '2000 EUR').waitFor();
    const counted = `${stage.service.urls.management}/actuator/console/api/deliveries/counts`;
    const { counts } = (await (await fetch(counted, AS_VISITOR)).json()) as {
      readonly counts: Readonly<Record<string, number>>;
    };
    assert.ok(Number(counts.dead) > 0 && Number(counts.unhandled) > 0);
    for (const status of ['dead', 'unhandled', 'done', 'discarded']) {
      await tab(page, status)
        .locator('.tab-count', { hasText: String(counts[status]) })
        .waitFor();
    }
    assert.equal(
      await page.getByRole('button', { name: /^(?:Replay|Discard) all/ }).count(),
      0,
      'all of them need a filter',
    );
    await page.getByLabel('Select all rows of this page').check();
    await page.getByRole('button', { name: /^Replay \d+ selected/ }).waitFor();
    await page.getByLabel('Select all rows of this page').uncheck();
    await rows(page, '2000 EUR').getByRole('checkbox').check();
    await rows(page, 'ticked_one').getByRole('checkbox').check();
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.getByRole('button', { name: 'Replay 2 selected' }).click();
    await page.getByText('2 deliveries can be replayed: 1 dead, 1 unhandled.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard 2 selected' }).click();
    await page.getByText('1 delivery can be discarded: 1 dead.').waitFor();
    await page.getByRole('button', { name: 'Discard 1 delivery' }).click();
    await page.getByText('1 of 1 discarded.').waitFor();
    await page.keyboard.press('Escape');
    await rows(page, '2000 EUR').waitFor({ state: 'detached' });
    assert.equal(await page.locator('.tick :checked').count(), 0);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('a row opens by a click anywhere, and the focus survives what removes its element', async () => {
    const { page } = stage.shared;
    await deliver(stage.service, 'payment_received', { amount: 3_000 });
    await goTo(page, 'deliveries?status=dead');
    await rows(page, '3000 EUR').waitFor();
    const discard = rows(page, '3000 EUR').getByRole('button', { name: /^Discard/ });
    await discard.focus();
    await page.keyboard.press('Enter');
    await rows(page, '3000 EUR').waitFor({ state: 'detached' });
    assert.equal(await page.evaluate('document.activeElement === document.body'), false);
    await goTo(page, 'deliveries?event=invoice_sent');
    await rows(page, 'invoice_sent').locator('.status').first().click();
    await page.getByRole('heading', { level: 1, name: 'invoice_sent' }).waitFor();
  });

  it('copies a delivery as a curl command, which sends it again', async () => {
    const { page, troubles } = stage.shared;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await deliver(stage.service, 'copied_one', "it's 100% Grüße");
    await deliver(stage.service, 'copied_two', { quote: "it's 100% Grüße" });
    await goTo(page, 'deliveries?event=copied_two');
    await page.locator('tbody a').first().click();
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.locator('.toast', { hasText: 'Copied' }).waitFor();
    const command = await page.evaluate<string>('navigator.clipboard.readText()');
    assert.match(command, /-H 'x-request-id: order-7781'/);
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command]);
    assert.match(stdout, /ok|received/i);
    await goTo(page, 'deliveries?event=copied_two');
    await until(page, "document.querySelectorAll('tbody tr').length === 2");
    assert.deepEqual(troubles.splice(0), []);
  });

  it('sends a test delivery of each source, signed as its sender would', async () => {
    const { page, troubles } = stage.shared;
    await goTo(page, 'deliveries');
    await page.getByRole('button', { name: 'Send a test delivery' }).click();
    const dialog = page.locator('dialog');
    for (const source of ['', 'github', 'stripe']) {
      await dialog.locator(`option[value="${source}"]`).waitFor({ state: 'attached' });
      await dialog.getByLabel('Source').selectOption(source);
      await dialog.getByRole('button', { name: 'Send', exact: true }).click();
      await dialog.getByText('Answered 200').waitFor();
      await dialog.getByLabel('Source').selectOption('');
    }
    await dialog.getByLabel('Source').selectOption('stripe');
    await dialog.getByRole('combobox', { name: /^Sample/ }).selectOption('checkout.session.completed');
    const data = dialog.getByLabel('Data, as JSON');
    assert.match(await data.inputValue(), /"object": "checkout\.session"/);
    await dialog.getByRole('button', { name: 'Send', exact: true }).click();
    await dialog.getByText('Answered 200').waitFor();
    await data.fill('{');
    await dialog.getByRole('button', { name: 'Send', exact: true }).click();
    await dialog.getByText('The data is not valid JSON').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await goTo(page, 'deliveries?source=github');
    await rows(page, 'github').first().waitFor();
    await goTo(page, 'deliveries?event=checkout.session.completed');
    await rows(page, 'stripe').first().waitFor();
    assert.deepEqual(troubles.splice(0), []);
  });

  it('edits a delivery and sends it again, with a new id and signature', async () => {
    const { page, troubles } = stage.shared;
    for (const [source, filter] of [
      ['', 'event=copied_two'],
      ['stripe', 'source=stripe'],
    ] as const) {
      await goTo(page, `deliveries?${filter}`);
      await page.locator('tbody a').first().click();
      await page.getByRole('button', { name: 'Edit and send again' }).click();
      const dialog = page.locator('dialog');
      const body = await dialog.getByLabel('Body').inputValue();
      await dialog.getByLabel('Body').fill(body.replace('{', `{"edited_at":"${source}desk",`));
      // In a text of several lines, Enter with Ctrl.
      await page.keyboard.press('Control+Enter');
      await dialog.getByText('Answered 200').waitFor();
      await dialog.getByRole('link', { name: 'Show the delivery' }).click();
      await page.locator('.raw', { hasText: `"edited_at":"${source}desk"` }).waitFor();
      await page.keyboard.press('Escape');
    }
    assert.deepEqual(troubles.splice(0), []);
  });

  it('changes a level for a while', async () => {
    const { page, troubles } = stage.shared;
    await goTo(page, 'loggers');
    await page.getByLabel('Level of rest').selectOption('DEBUG');
    await page.locator('.toast', { hasText: 'rest logs at DEBUG for 10 minutes' }).waitFor();
    await rows(page, 'rest').locator('.level.debug').waitFor();
    assert.doesNotMatch((await rows(page, 'rest').locator('td').last().textContent()) ?? '', /–/);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('creates, finds, changes and deletes a user, and takes a deletion back', async () => {
    const { page } = stage.shared;
    await goTo(page, 'users');
    await page.getByRole('button', { name: 'New user' }).click();
    const dialog = page.locator('dialog');
    await dialog.getByLabel('Name').fill('Margaret Hamilton');
    await dialog.getByLabel('Email').fill('nobody');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.getByText('needs an @').waitFor();
    await dialog.getByLabel('Email').fill('margaret@example.com');
    await page.keyboard.press('Enter');
    await rows(page, 'Margaret Hamilton').waitFor();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'New user');

    await page.getByLabel('Search for').fill('MARGARET');
    await page.getByRole('button', { name: 'Search' }).click();
    await until(page, "document.querySelectorAll('tbody tr').length === 1");
    await page.getByLabel('Find by').selectOption('name:prefix');
    await page.getByLabel('Search for').fill('margaret h');
    await page.getByRole('button', { name: 'Search' }).click();
    await until(page, "location.hash === '#/users?name%3Aprefix=margaret+h'");
    await rows(page, 'Margaret Hamilton').waitFor();
    await page.getByRole('button', { name: 'Edit Margaret Hamilton' }).click();
    await dialog.getByLabel('Name').fill('Margaret H.');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await rows(page, 'Margaret H.').waitFor();

    await page.getByRole('button', { name: 'Delete Margaret H.' }).click();
    await page.getByText('No matching users').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await rows(page, 'Margaret H.').waitFor();
    await page.getByRole('button', { name: 'Delete Margaret H.' }).click();
    const deleted = page.waitForResponse((response) => response.request().method() === 'DELETE');
    await goTo(page, 'overview');
    assert.equal((await deleted).status(), 204, 'leaving the page ends the wait');
    const { data } = JSON.parse(await (await fetch(`${stage.service.urls.rest}/users`)).text());
    assert.ok(!JSON.stringify(data).includes('Margaret'));
  });

  it('sorts users by any field, page by page, there and back', async () => {
    const { page } = stage.shared;
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        fetch(`${stage.service.urls.rest}/users`, {
          method: 'POST',
          body: JSON.stringify({
            name: `Zoe ${String(i).padStart(2, '0')}`,
            email: `z${99 - i}@example.com`,
          }),
        }),
      ),
    );
    await goTo(page, 'users?name:prefix=Zoe');
    const first = async (name: string) => page.locator('tbody tr:first-child', { hasText: name }).waitFor();
    await first('Zoe 00');
    await page.locator('[aria-sort=ascending]', { hasText: 'Name' }).waitFor();
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await first('Zoe 50');
    await until(page, "document.querySelectorAll('tbody tr').length === 10");
    await page.getByRole('button', { name: 'Previous', exact: true }).click();
    await first('Zoe 00');
    await page.getByRole('button', { name: 'Email', exact: true }).click();
    await first('Zoe 59');
    await page.getByRole('button', { name: 'Email', exact: true }).click();
    await first('Zoe 00');
    await page.getByRole('button', { name: 'Id', exact: true }).click();
    await page.locator('[aria-sort=ascending]', { hasText: 'Id' }).waitFor();
  });
}

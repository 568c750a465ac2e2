import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Page } from 'playwright-core';
import { until } from '../support.ts';
import { accessibilityProblems, goTo } from './console-page.ts';
import { deliver } from './demo.ts';
import type { Stage } from './stage.ts';

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
    await page.getByLabel('Status').selectOption('dead');
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
    await page.getByText('2 deliveries match and can be replayed.').waitFor();
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
    await page.locator('.toast', { hasText: 'Replay requested' }).waitFor();
    await goTo(page, 'deliveries?status=dead');
    const discard = page.getByRole('button', { name: /^Discard 0/ }).first();
    const name = await discard.getAttribute('aria-label');
    await discard.click();
    await page.locator('.toast', { hasText: 'Discarded' }).waitFor();
    await goTo(page, 'deliveries?status=discarded');
    await page.locator('tbody a', { hasText: String(name).slice(8, 26) }).waitFor();
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

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../support/wait-for.ts';
import { until } from '../support.ts';
import { accessibilityProblems, goTo, NARROW, openConsole, PHONE, tooWide, WIDE } from './console-page.ts';
import { AS_VISITOR, VISITOR } from './demo.ts';
import type { Stage } from './stage.ts';

/** Each page, and what has to be on it. */
const PAGES: Readonly<Record<string, readonly [title: string, content: string]>> = {
  overview: ['Overview', '.plot canvas'],
  deliveries: ['Deliveries', 'tbody tr'],
  users: ['Users', 'tbody tr'],
  relations: ['Relations', 'tbody tr'],
  rules: ['Rules', 'tbody tr'],
  requests: ['Requests', 'tbody tr'],
  loggers: ['Loggers', 'tbody select'],
  log: ['Log', '.log-line'],
  'metrics/http.server.requests': ['Metrics', '.plot canvas'],
  environment: ['Environment', 'tbody tr'],
  threads: ['Threads', '.stack li'],
};

/** The pages as they are, on the shared service. */
export function pagesSuite(stage: Stage): void {
  for (const [path, [title, content]] of Object.entries(PAGES)) {
    it(`${title}, in light and dark, wide and narrow`, async () => {
      const { page, troubles } = stage.shared;
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
        // A plot follows the width of the window a moment later.
        await waitFor(`a fitting page, ${look}`, async () => (await tooWide(page)).length === 0);
        const rules = { light: undefined, dark: ['color-contrast'] }[colorScheme];
        if (size === WIDE) assert.deepEqual(await accessibilityProblems(page, rules), [], look);
      }
      assert.match(await page.title(), new RegExp(title));
      assert.deepEqual(troubles.splice(0), []);
    });
  }

  it('one delivery, and the forms of its body', async () => {
    const { page, troubles } = stage.shared;
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

  it('one delivery: the headers that are kept, and every attempt with its duration, answer and error', async () => {
    const { page, troubles } = stage.shared;
    await page.setViewportSize(WIDE);
    await goTo(page, 'deliveries?event=invoice_sent');
    await page.locator('tbody a').first().click();
    const steps = page.locator('.timeline .attempt');
    await steps.nth(1).waitFor();
    const [first = '', second = ''] = await steps.allTextContents();
    assert.match(
      first,
      /Attempt 1 failed, retry follows503forward:billing.*, took [\d.]+ (?:µs|ms|s), on .*ledger is being closed/,
    );
    assert.match(second, /Attempt 2 succeeded200forward:billing.*, took .*Booked as R-2291/);
    await page.locator('.timeline .job', { hasText: '2 attempts, ended' }).waitFor();
    assert.equal(
      await page.locator('.raw').textContent(),
      'POST /webhook\ncontent-type: application/json\nuser-agent: shop/3.4\nx-request-id: order-7781\n\n' +
        '{"event":"invoice_sent","data":{"invoice":"R-2291","total":148.75,"customer":"cus_45.5"}}',
    );
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.setViewportSize(NARROW);
    assert.deepEqual(await tooWide(page), []);
    assert.deepEqual(troubles, []);
  });

  it('what fails comes first, with its number, its error and the way to it', async () => {
    const { page, troubles } = stage.shared;
    await page.setViewportSize(WIDE);
    await goTo(page, 'overview');
    const failing = page.getByRole('region', { name: 'What fails' });
    await failing.waitFor();
    assert.equal(
      await page.evaluate("document.querySelector('main section') === document.querySelector('.failing')"),
      true,
    );
    const dead = failing.getByRole('link', { name: /^2 dead deliveries$/ });
    await failing.getByText('The bank refused 1250 EUR').waitFor();
    assert.equal(
      await failing.getByRole('link', { name: '2 dead', exact: true }).getAttribute('href'),
      '#/deliveries?status=dead&target=handler%3Apayment_received',
    );
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: '2 dead' }).waitFor();
    await page.locator('.plot').first().waitFor();
    const plots = await page.locator('.plot figcaption').allTextContents();
    assert.deepEqual(
      [...plots.slice(0, 2), plots.at(-1)],
      ['Attempts by outcome', 'Attempts by handler', 'Commit time'],
    );
    const figures = page.locator('.figure');
    assert.equal(
      await figures.getByRole('link').count(),
      await figures.count(),
      'each figure leads somewhere',
    );
    await dead.click();
    await until(page, "location.hash === '#/deliveries?status=dead'");
    await until(page, "document.querySelectorAll('tbody tr').length === 2");
    assert.deepEqual(await page.locator('td.error-cell').allTextContents(), [
      'Error: The bank refused 1250 EUR: limit reached',
      'Error: The bank refused 990 EUR: limit reached',
    ]);
    assert.deepEqual(troubles, []);
  });

  it('on a phone rows are cards, and a tap opens one', async () => {
    const context = await stage.browser.newContext({
      viewport: PHONE,
      hasTouch: true,
      httpCredentials: VISITOR,
    });
    const page = await context.newPage();
    await page.goto(`${stage.service.urls.management}/actuator/console#/deliveries?event=invoice_sent`);
    const card = page.locator('tbody tr').first();
    await card.waitFor();
    const display = "getComputedStyle(document.querySelector('tbody tr')).display";
    assert.equal(await page.evaluate(display), 'grid');
    await card.locator('[data-title="Status"]').tap();
    await page.getByRole('heading', { level: 1, name: 'invoice_sent' }).waitFor();
    assert.deepEqual(await tooWide(page), []);
    await context.close();
  });

  it('its own requests are not counted in what it shows', async () => {
    const { page } = stage.shared;
    await goTo(page, 'overview');
    await page.locator('.plot').first().waitFor();
    const names = (await (
      await fetch(
        `${stage.service.urls.management}/actuator/console/api/metrics/http.server.requests`,
        AS_VISITOR,
      )
    ).json()) as {
      availableTags: { tag: string; values: string[] }[];
    };
    const uris = names.availableTags.find(({ tag }) => tag === 'uri')?.values ?? [];
    assert.ok(uris.length > 3, String(uris));
    assert.deepEqual(
      uris.filter((uri) => uri.includes('/console')),
      [],
    );
  });

  it('the environment shows the own settings, hides secrets and other variables, and says how to show more', async () => {
    const { page } = stage.shared;
    await page.setViewportSize(WIDE);
    await goTo(page, 'environment');
    const value = (name: string) =>
      page
        .getByRole('row', { name: new RegExp(`^${name} `) })
        .locator('td')
        .first();
    await page.getByText('MANAGEMENT_SHOW_VALUES=always').waitFor();
    assert.equal(await value('WEBHOOK_HEADERS').textContent(), 'user-agent,x-request-id');
    assert.equal(await value('MANAGEMENT_PASSWORD').textContent(), 'hidden');
    // Programs get what MANAGEMENT_SHOW_VALUES says.
    const env = await (await fetch(`${stage.service.urls.management}/actuator/env`, AS_VISITOR)).text();
    assert.doesNotMatch(env, /x-request-id/);
  });

  it('who may do what with the rows and columns of relations', async () => {
    const { page, troubles } = stage.shared;
    await page.setViewportSize(WIDE);
    await goTo(page, 'rules');
    await page.getByRole('heading', { level: 1, name: 'Rules' }).waitFor();
    const rows = page.locator('tbody tr');
    await rows.first().waitFor();
    assert.deepEqual(await rows.allTextContents(), [
      'readscope staff or where {"owner":{"caller":"/sub"}}',
      'createanyone',
      'updatewhere {"owner":{"caller":"/sub"}}',
      'deletenobody',
      'owneras the rowby the service, with the claim /sub',
      'rankscope staffscope staff',
    ]);
    assert.deepEqual(troubles, []);
  });

  it('what the rules let a caller do with one row', async () => {
    const { page, troubles } = stage.shared;
    await page.setViewportSize(WIDE);
    await goTo(page, 'relations/notes');
    await page.getByRole('button', { name: 'New note' }).click();
    await page.getByLabel(/^title/).fill('Plan');
    await page.getByLabel(/^owner/).fill('ann');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.locator('tbody a').first().click();
    const told = page.getByRole('form', { name: 'Who may see this row' });
    const verdicts = async (claims: string, last: string) => {
      await told.getByLabel(/^Claims/).fill(claims);
      await told.getByRole('button', { name: 'Ask' }).click();
      await told.locator('.status', { hasText: last }).waitFor();
      return told.getByRole('status').textContent();
    };
    assert.equal(await verdicts('{"sub":"ann"}', 'delete'), 'may readmay updatemay not deletewithout rank');
    assert.equal(await verdicts('{"scope":"staff"}', 'delete'), 'may readmay not updatemay not delete');
    assert.equal(await verdicts('', 'delete'), 'may not readmay not updatemay not delete');
    assert.deepEqual(await accessibilityProblems(page), []);
    assert.deepEqual(troubles.splice(0), []);
  });

  it('requests by door, status and duration', async () => {
    const { page } = stage.shared;
    await page.setViewportSize(WIDE);
    await slowRequest(`${stage.service.urls.rest}/users`);
    await goTo(page, 'requests');
    const shows = (pattern: RegExp) =>
      until(
        page,
        `(() => {
          const rows = [...document.querySelectorAll('tbody tr')].map(({ textContent }) => textContent);
          return rows.length > 0 && rows.every((row) => ${pattern}.test(row));
        })()`,
      );
    await page.getByLabel('Door').selectOption('rest');
    await shows(/REST/);
    await page.getByLabel('Status').selectOption('4');
    await shows(/REST.*4\d\d/);
    await until(page, "location.hash === '#/requests?door=rest&status=4'");
    await page.getByLabel('Status').selectOption('');
    await page.getByLabel('Duration').selectOption('10');
    await shows(/REST.*(?:\d{2,}(?:\.\d+)? ms|\d s)$/);
    await page.locator('tbody tr', { hasText: 'POST' }).first().waitFor();
  });

  it('leads to GraphiQL and to the API reference', async () => {
    const { page, url } = stage.shared;
    const links = page.locator('.elsewhere a');
    const graphiql = await links.filter({ hasText: 'GraphiQL' }).getAttribute('href');
    assert.equal(graphiql, `${stage.service.urls.graphql}/graphql`);
    const reference = await links.filter({ hasText: 'API reference' }).getAttribute('href');
    const opened = await stage.browser.newPage({ httpCredentials: VISITOR });
    await opened.goto(new URL(reference ?? '', url).href);
    await opened.getByText('/update/{id}').first().waitFor();
    await opened.close();
  });

  it('works with the keyboard alone', async () => {
    await using console = await openConsole(stage.browser, stage.service, 'overview');
    const { page } = console;
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the page');
    for (let i = 0; i < 2; i++) await page.keyboard.press('Tab');
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Deliveries');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Deliveries' }).waitFor();
  });

  it('the arrow keys read all plots at the same moment', async () => {
    const { page } = stage.shared;
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
    const context = await stage.browser.newContext({ viewport: WIDE, httpCredentials: VISITOR });
    const page = await context.newPage();
    const sizes: number[] = [];
    page.on('response', async (response) => {
      if (response.url().includes('/assets/'))
        sizes.push(Number(await response.headerValue('content-length')));
    });
    await page.goto(`${stage.service.urls.management}/actuator/console`);
    await page.locator('h1').waitFor();
    await context.close();
    const total = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(sizes.length === 2 && total < 150_000, `${sizes}`);
  });

  it('has a page for what it does not know, and a menu on a phone', async () => {
    const { page } = stage.shared;
    await page.setViewportSize(NARROW);
    await page.getByRole('button', { name: 'Pages' }).click();
    await page.getByRole('link', { name: 'Loggers' }).click();
    await page.getByRole('heading', { level: 1, name: 'Loggers' }).waitFor();
    await page.getByRole('link', { name: 'Deliveries' }).waitFor({ state: 'hidden' });
    await goTo(page, 'nowhere');
    await page.getByText('There is no such page').waitFor();
  });
}

/** A request whose body ends 40 ms after the service began it, which it says by 100 Continue. */
async function slowRequest(url: string): Promise<void> {
  const headers = { 'content-type': 'application/json', expect: '100-continue' };
  const asked = request(url, { method: 'POST', headers });
  asked.flushHeaders();
  await once(asked, 'continue');
  await sleep(40);
  asked.end('{"name":7}');
  const [response] = await once(asked, 'response');
  response.resume();
  await once(response, 'close');
}

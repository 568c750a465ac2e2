import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, Locator, Page } from 'playwright-core';
import { startTestService, type TestService } from '../../support/service.ts';
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

/** A relation with a column of each type, one that it refers to and one that refers to it. */
const MODULE = `
export default {
  relations: {
    teams: { columns: { name: { type: 'text', max: 120 }, motto: { type: 'text', max: 4000, nullable: true } } },
    things: {
      columns: {
        title: { type: 'text', max: 80, unique: true },
        kind: { type: 'enum', values: ['small', 'large'], nullable: true },
        count: { type: 'integer', min: 0, default: 7 },
        price: { type: 'decimal', precision: 8, scale: 2, nullable: true },
        big: { type: 'bigint', nullable: true },
        ratio: { type: 'number', nullable: true },
        done: { type: 'boolean' },
        flag: { type: 'boolean', nullable: true },
        day: { type: 'date', nullable: true },
        moment: { type: 'timestamp', nullable: true },
        code: { type: 'uuid', nullable: true },
        data: { type: 'json', nullable: true },
        file: { type: 'bytes', nullable: true },
        team: { type: 'reference', to: 'teams', nullable: true },
      },
      computed: { shout: { upper: 'title' } },
    },
    parts: {
      key: ['thing_id', 'name'],
      columns: { thing: { type: 'reference', to: 'things', onDelete: 'cascade' }, name: { type: 'text', max: 200 } },
    },
  },
};
`;

const HOSTILE = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>"'><svg onload=alert(1)>\u202e{{7*7}}`;

/** The input of a column; the text that labels a choice has its options too. */
const inputOf = (form: Locator, name: string): Locator =>
  form
    .getByLabel(new RegExp(`^${name}\\b`))
    .or(form.getByRole('combobox', { name, exact: true }))
    .first();

const row = (page: Page, text: string) => page.locator('tbody tr', { hasText: text });

/** Waits until the stream of the page has begun. */
const isLive = (page: Page) => until(page, "document.querySelector('.status').textContent === 'Live'");

describe('the pages of relations in Chromium', { skip, timeout: 600_000 }, () => {
  const opened = new AsyncDisposableStack();
  let browser: Browser;
  let service: TestService;
  let shared: Console;

  before(async () => {
    await buildConsole();
    service = opened.use(await startTestService({ module: MODULE, listens: true }));
    browser = opened.adopt(await launchBrowser(), (each) => each.close());
    await send('POST', 'teams', [{ name: 'Blue' }, { name: 'Red', motto: 'a\nb' }, { name: 'Green' }]);
    shared = opened.use(await openConsole(browser, service, 'relations'));
  });
  after(() => opened.disposeAsync());

  /** Writes at the REST door, as other clients do. */
  async function send(method: string, path: string, body?: unknown): Promise<string> {
    const init = { method, headers: { 'content-type': 'application/json' } };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const reply = await fetch(`${service.urls.rest}/${path}`, { ...init, ...sent });
    const text = await reply.text();
    assert.ok(reply.ok, text);
    return text;
  }
  const stored = async (path: string) => JSON.parse(await send('GET', path));
  const noTroubles = (but?: RegExp) =>
    assert.deepEqual(
      shared.troubles.splice(0).filter((each) => but?.test(each) !== true),
      [],
    );
  const toast = (page: Page, text: string) => page.locator('.toast', { hasText: text }).last().waitFor();
  /** Waits until a change is answered. */
  const changed = async (page: Page, save: () => Promise<void>) => {
    const answered = page.waitForResponse((reply) => reply.request().method() === 'PATCH');
    await save();
    return (await answered).status();
  };

  it('lists the relations, and leads to their rows', async () => {
    const { page } = shared;
    await page.getByRole('link', { name: 'teams' }).click();
    await page.getByRole('heading', { level: 1, name: 'teams' }).waitFor();
    await row(page, 'Green').waitFor();
    await page.getByText('3 rows').waitFor();
    assert.deepEqual(await page.locator('thead th').allTextContents(), ['id ↑', 'name', 'motto']);
    noTroubles();
  });

  it('creates a row of each type of column, and changes it', async () => {
    const { page } = shared;
    await goTo(page, 'relations/things');
    await page.getByRole('button', { name: 'New thing' }).click();
    const dialog = page.getByRole('dialog');
    const field = (name: string) => inputOf(dialog, name);
    await field('title').fill('One');
    await field('kind').selectOption('large');
    await field('price').fill('9.5');
    await field('big').fill('9223372036854775807');
    await field('ratio').fill('0.25');
    await field('done').check();
    await field('flag').selectOption('false');
    await field('day').fill('2024-02-29');
    await field('moment').fill('2024-02-29T10:11');
    await field('code').fill('0B1E2C3D-4F50-4A6B-8C7D-8E9FA0B1C2D3');
    await field('data').fill('{"a":[1,2.50]}');
    await field('A file for file').setInputFiles({
      name: 'a.bin',
      mimeType: 'application/octet-stream',
      buffer: Buffer.from([0, 255, 7]),
    });
    await until(
      page,
      "[...document.querySelectorAll('dialog textarea')].some(({ value }) => value === 'AP8H')",
    );
    assert.equal(await dialog.getByLabel(/^shout/).count(), 0, 'a computed column has no field');
    assert.equal(await dialog.getByLabel(/^id/).count(), 0);
    await dialog.getByRole('button', { name: 'Create' }).click();
    await toast(page, 'thing 1 is created');
    assert.deepEqual(await stored('things/1'), {
      id: 1,
      title: 'One',
      kind: 'large',
      count: 7,
      price: '9.50',
      big: '9223372036854775807',
      ratio: 0.25,
      done: true,
      flag: false,
      day: '2024-02-29',
      moment: '2024-02-29T10:11:00.000Z',
      code: '0b1e2c3d-4f50-4a6b-8c7d-8e9fa0b1c2d3',
      data: { a: [1, 2.5] },
      file: 'AP8H',
      team_id: null,
      shout: 'ONE',
    });
    await row(page, 'One').getByRole('link', { name: '1' }).click();
    await page.getByRole('heading', { level: 1, name: 'thing 1' }).waitFor();
    const form = page.getByRole('form', { name: 'The columns of thing 1' });
    const own = (name: string) => inputOf(form, name);
    assert.equal(await own('moment').inputValue(), '2024-02-29T10:11');
    assert.deepEqual(JSON.parse(await own('data').inputValue()), { a: [1, 2.5] });
    assert.equal(await page.getByRole('button', { name: 'Save' }).isDisabled(), true);
    await own('price').fill('');
    await own('kind').selectOption('');
    await own('moment').fill('2024-03-01T00:00:00.125');
    await own('title').fill('Uno');
    assert.equal(await changed(page, () => page.getByRole('button', { name: 'Save' }).click()), 200);
    await toast(page, 'thing 1 is stored');
    const { title, price, kind, moment, shout } = await stored('things/1');
    assert.deepEqual(
      [title, price, kind, moment, shout],
      ['Uno', null, null, '2024-03-01T00:00:00.125Z', 'UNO'],
    );
    await form.getByText('UNO').waitFor();
    noTroubles();
  });

  it('shows the faults of a write at their fields, and of a text that is no JSON', async () => {
    const { page } = shared;
    await goTo(page, 'relations/things');
    await page.getByRole('button', { name: 'New thing' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^count/).fill('-1');
    await dialog.getByLabel(/^price/).fill('a lot');
    await dialog.getByRole('button', { name: 'Create' }).click();
    const faultOf = (name: string) =>
      dialog.locator('.row-field', { has: page.getByLabel(new RegExp(`^${name}`)) }).locator('.error-text');
    assert.equal(await faultOf('title').textContent(), '"title" is missing');
    assert.equal(await faultOf('count').textContent(), '"count" must be at least 0');
    assert.match((await faultOf('price').textContent()) ?? '', /"price" must be/);
    assert.equal(await dialog.getByLabel(/^count/).getAttribute('aria-invalid'), 'true');
    await dialog.getByLabel(/^title/).fill('Uno');
    await dialog.getByLabel(/^count/).fill('3');
    await dialog.getByLabel(/^price/).fill('3');
    await dialog.getByLabel(/^data/).fill('{"a":');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await faultOf('data').filter({ hasText: 'This is no JSON' }).waitFor();
    await dialog.getByLabel(/^data/).fill('');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await faultOf('title').filter({ hasText: /title/ }).waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await stored('things')).length, 1);
    noTroubles(/400|409/);
  });

  it('filters by the types of columns, in the URL, and sorts page by page', async () => {
    const { page } = shared;
    const rows = Array.from({ length: 70 }, (_, i) => ({
      title: `Row ${String(i).padStart(2, '0')}`,
      count: i,
      price: `${i}.00`,
      kind: i % 2 === 0 ? 'small' : null,
      done: i % 7 === 0,
      day: `2025-01-${String((i % 28) + 1).padStart(2, '0')}`,
    }));
    await goTo(page, 'relations');
    await page.getByRole('link', { name: 'parts' }).waitFor();
    await send('POST', 'things', rows);
    await goTo(page, 'relations/things');
    await page.getByText('71 rows').waitFor();
    const add = async (column: string, test: string, value: string) => {
      await page.getByLabel('Column').selectOption(column);
      await page.getByLabel('Test').selectOption({ label: test });
      const choice = page.getByRole('combobox', { name: 'Value', exact: true });
      if ((await choice.count()) === 1) await choice.selectOption({ label: value });
      else await page.getByRole('searchbox', { name: 'Value' }).fill(value);
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
    };
    await add('title', 'contains', 'Row');
    await page.getByText('70 rows').waitFor();
    await add('price', 'from', '10');
    await page.getByText('60 rows').waitFor();
    await add('price', 'up to', '39');
    await page.getByText('30 rows').waitFor();
    await add('kind', 'is', 'small');
    await page.getByText('15 rows').waitFor();
    await add('done', 'is', 'true');
    await page.getByText('2 rows').waitFor();
    assert.deepEqual(await page.locator('tbody th').allTextContents(), ['16', '30']);
    assert.match(
      decodeURIComponent(page.url()),
      /title:contains=Row&price:gte=10&price:lte=39&kind=small&done=true/,
    );
    await page.reload();
    await page.getByText('2 rows').waitFor();
    await page.getByRole('button', { name: 'Remove the filter done is true' }).click();
    await page.getByText('15 rows').waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await add('kind', 'has a value', 'no');
    await page.getByText('36 rows').waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await page.getByText('71 rows').waitFor();

    const first = (text: string) => page.locator('tbody tr:first-child', { hasText: text }).waitFor();
    await page.getByRole('button', { name: 'count', exact: true }).click();
    await first('Row 00');
    await page.getByRole('button', { name: 'count', exact: true }).click();
    await first('Row 69');
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await first('Row 19');
    await page.getByRole('button', { name: 'Previous', exact: true }).click();
    await first('Row 69');
    assert.equal(
      await page.getByRole('button', { name: 'data', exact: true }).count(),
      0,
      'no order by JSON',
    );
    await add('count', 'is', 'many');
    await page.getByText('compares "count"', { exact: false }).waitFor();
    noTroubles(/400/);
  });

  it('finds the row of a reference by its name, with the keyboard alone', async () => {
    const { page } = shared;
    await goTo(page, 'relations/things/1');
    const team = page.getByRole('combobox', { name: /^team_id/ });
    await team.focus();
    await page.keyboard.type('re');
    const options = page.locator('[role=option]');
    await options.filter({ hasText: 'Green' }).waitFor();
    assert.deepEqual(await options.allTextContents(), ['Red 2', 'Green 3']);
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    assert.equal(await team.inputValue(), '3');
    await page.locator('.reference-name', { hasText: 'Green' }).waitFor();
    assert.equal(await changed(page, () => page.keyboard.press('Enter')), 200);
    assert.equal((await stored('things/1')).team_id, 3);
    await team.fill('99');
    await page.getByText('Nothing found').waitFor();
    await page.keyboard.press('Tab');
    await page.locator('.reference-name', { hasText: 'no such row' }).waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('.row-field', { has: team }).locator('.error-text').waitFor();
    await goTo(page, 'relations/things?title=Uno');
    await row(page, 'Uno').getByRole('link', { name: 'Green 3' }).click();
    await page.getByRole('heading', { level: 1, name: 'team 3' }).waitFor();
    noTroubles(/409/);
  });

  it('has the rows that refer to a row, and creates more of them', async () => {
    const { page } = shared;
    await goTo(page, 'relations/teams/3');
    await page.getByRole('button', { name: 'things', exact: true }).waitFor();
    await row(page, 'Uno').waitFor();
    assert.equal(await page.locator('tbody tr').count(), 1);
    await row(page, 'Uno').getByRole('link', { name: '1', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'thing 1' }).waitFor();
    await page.getByText('No rows').waitFor();
    await page.getByRole('button', { name: 'New part' }).click();
    const dialog = page.getByRole('dialog');
    assert.equal(await dialog.getByLabel(/^thing_id/).inputValue(), '1');
    await dialog.getByLabel(/^name/).fill('a/b, c?#%');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await row(page, 'a/b, c?#%').getByRole('link', { name: '1,a/b, c?#%' }).click();
    await page.getByRole('heading', { level: 1, name: 'part 1,a/b, c?#%' }).waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { level: 1, name: 'parts' }).waitFor();
    assert.deepEqual(await stored('parts'), []);
    noTroubles();
  });

  it('tells of a change by another writer, and loses neither', async () => {
    const { page } = shared;
    await goTo(page, 'relations/teams/1');
    const name = page.getByLabel(/^name/);
    const motto = page.getByLabel(/^motto/);
    await motto.fill('mine');
    await isLive(page);
    await send('PATCH', 'teams/1', { name: 'Azure' });
    await page.getByText('Another writer has changed this row since it was read').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('and nothing is stored', { exact: false }).waitFor();
    await page.getByText('name is now Azure', { exact: false }).waitFor();
    assert.deepEqual([await name.inputValue(), await motto.inputValue()], ['Azure', 'mine']);
    assert.equal((await stored('teams/1')).motto, null);
    assert.equal(await changed(page, () => page.getByRole('button', { name: 'Save' }).click()), 200);
    assert.deepEqual(await stored('teams/1'), { id: 1, name: 'Azure', motto: 'mine' });
    // A form in which nothing is typed follows.
    await send('PATCH', 'teams/1', { name: 'Blue' });
    await until(page, "[...document.querySelectorAll('input')].some(({ value }) => value === 'Blue')");
    await motto.fill('');
    await page.getByLabel('null in motto').check();
    assert.equal(await changed(page, () => page.getByRole('button', { name: 'Save' }).click()), 200);
    assert.equal((await stored('teams/1')).motto, null);
    noTroubles(/412/);
  });

  it('marks rows that others change and remove, and counts those that they create', async () => {
    const { page } = shared;
    await goTo(page, 'relations/teams');
    await row(page, 'Red').waitFor();
    await isLive(page);
    await send('PATCH', 'teams/2', { name: 'Crimson' });
    await page.locator('tr.changed', { hasText: 'Crimson' }).waitFor();
    await send('POST', 'teams', { name: 'Violet' });
    await page.getByText('A row has been created since').waitFor();
    await send('DELETE', 'teams/2');
    await page.locator('tr.deleted', { hasText: 'Crimson' }).waitFor();
    assert.equal(await row(page, 'Violet').count(), 0);
    await page.getByRole('button', { name: 'Read again' }).click();
    await row(page, 'Violet').waitFor();
    assert.equal(await row(page, 'Crimson').count(), 0);
    noTroubles();
  });

  it('imports a file after a preview of its faults, and exports the rows that match', async () => {
    const { page } = shared;
    await goTo(page, 'relations/things');
    await page.getByRole('button', { name: 'Import' }).click();
    const dialog = page.getByRole('dialog');
    const csv = `title,count,done,team_id\nUno,1,false,\nBook A,1,true,1\n<b>x</b>,-1,false,\nBook B,2,false,777\nBook C,3,false,\n`;
    const buffer = Buffer.from(csv);
    await dialog.getByLabel(/^A file/).setInputFiles({ name: 'things.csv', mimeType: 'text/csv', buffer });
    await dialog.getByRole('button', { name: 'Check' }).click();
    await dialog.getByText('2 rows can be imported, 3 refused.').waitFor();
    const refused = await dialog.locator('tbody tr').allTextContents();
    assert.deepEqual(
      refused.map((each) => each.charAt(0)),
      ['2', '4', '5'],
    );
    assert.match(refused.join(), /"count" must be at least 0.*teams has no row with this key/);
    assert.deepEqual(await stored('things?title:prefix=Book'), []);
    assert.deepEqual(await accessibilityProblems(page), []);
    await dialog.getByRole('button', { name: 'Import 2 rows of 5' }).click();
    await dialog.getByText('2 rows imported, 3 refused.').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    assert.equal((await stored('things?title:prefix=Book')).length, 2);

    await goTo(page, 'relations/things?title:prefix=Book');
    await row(page, 'Book A').waitFor();
    for (const [format, first] of [
      ['CSV', /^id,title,[^\n]*\n\d+,"Book A"/],
      ['NDJSON', /^\{"id":\d+,"title":"Book A"/],
    ] as const) {
      await page.getByRole('button', { name: 'Export' }).click();
      await dialog.getByLabel('Format').selectOption({ label: format });
      const saved = page.waitForEvent('download');
      await dialog.getByRole('button', { name: 'Export' }).click();
      const file = await saved;
      assert.equal(file.suggestedFilename(), `things.${format.toLowerCase()}`);
      const text = Buffer.concat(await (await file.createReadStream()).toArray()).toString();
      assert.match(text, first);
      assert.equal(text.trim().split('\n').length, format === 'CSV' ? 3 : 2);
    }
    await page.getByRole('button', { name: 'Import' }).click();
    const wrong = { name: 'a.csv', mimeType: 'text/csv', buffer: Buffer.from('titel\nx\n') };
    await dialog.getByLabel(/^A file/).setInputFiles(wrong);
    await dialog.getByRole('button', { name: 'Check' }).click();
    await dialog.getByText('things has no column "titel"', { exact: false }).waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    noTroubles(/400/);
  });

  it('shows hostile values as text, and very long ones cut', async () => {
    const { page } = shared;
    await send('POST', 'teams', { name: HOSTILE, motto: `${'x'.repeat(3_999)}y` });
    const team = (await stored(`teams?sort=-id&limit=1`))[0].id;
    await send('POST', 'things', {
      title: 'Hostile',
      done: false,
      team_id: team,
      data: { [HOSTILE]: HOSTILE },
    });
    const thing = (await stored(`things?title=Hostile`))[0].id;
    await send('POST', 'parts', { thing_id: thing, name: HOSTILE });
    const key = encodeURIComponent(`${thing},${encodeURIComponent(HOSTILE)}`);
    for (const path of [
      'teams',
      `teams/${team}`,
      'things?title=Hostile',
      `things/${thing}`,
      'parts',
      `parts%2F${key}`,
      `parts?name=${encodeURIComponent(HOSTILE)}`,
    ]) {
      for (const size of [WIDE, NARROW]) {
        await page.setViewportSize(size);
        await goTo(page, `relations/${path}`);
        await page
          .locator('main')
          .getByText('<script>', { exact: false })
          .or(page.locator('input, textarea'))
          .first()
          .waitFor();
        await until(page, "document.querySelector('[aria-busy]') === null");
        assert.equal(await page.locator('main img, main script, main svg[onload]').count(), 0, path);
        assert.deepEqual(await tooWide(page), [], `${path} at ${size.width}`);
      }
    }
    await page.setViewportSize(WIDE);
    assert.match(await page.title(), /Portico console/);
    await goTo(page, 'relations/teams');
    const cell = row(page, '<img').locator('td').nth(1);
    assert.equal((await cell.textContent())?.length, 161);
    await goTo(page, `relations/${encodeURIComponent(HOSTILE)}`);
    await page.getByText('There is no such relation').waitFor();
    await goTo(page, 'relations/teams/777');
    await page.getByText('There is no such row').waitFor();
    noTroubles(/404/);
  });

  it('fits, in light and dark, wide and narrow', async () => {
    const { page } = shared;
    for (const path of ['relations', 'relations/things', 'relations/things/1']) {
      await goTo(page, path);
      for (const [colorScheme, size] of [
        ['light', WIDE],
        ['dark', WIDE],
        ['dark', NARROW],
        ['light', NARROW],
      ] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(size);
        await page.locator('tbody tr, .empty').first().waitFor();
        assert.deepEqual(await tooWide(page), [], path);
        const rules = { light: undefined, dark: ['color-contrast'] }[colorScheme];
        assert.deepEqual(
          await accessibilityProblems(page, rules),
          [],
          `${path} ${colorScheme} ${size.width}`,
        );
      }
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize(WIDE);
    noTroubles();
  });
});

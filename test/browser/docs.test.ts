import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startTestService } from '../support/service.ts';
import { launchBrowser, openPage, root, skip, until } from './support.ts';

test('the reference page shows all doors, sends a request, and asks nobody else', { skip }, async () => {
  await promisify(execFile)(process.execPath, ['scripts/build-pages.ts'], { cwd: root });
  await using service = await startTestService({
    env: { MANAGEMENT_INCLUDE: 'docs,health' },
    module: "export default { relations: { books: { columns: { title: { type: 'text', max: 200 } } } } };",
  });
  await service.listen();
  await using browser = await launchBrowser();
  await using context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const { page, troubles } = await openPage(context, `${service.urls.management}/actuator/docs`);
  assert.equal(await page.title(), 'Portico: APIs');

  await page.locator('#operations-rest-createUser').click();
  const create = page.locator('#operations-rest-createUser');
  await create.getByText('The user is stored').first().waitFor();
  // The other doors have other origins, which a browser would not let the page read.
  assert.equal(await create.getByRole('button', { name: 'Try it out' }).count(), 0);

  const books = page.locator('.opblock[id^="operations-books-"][id$=".create"]');
  await books.click();
  await books.getByText('"title": "title"').first().waitFor();

  const health = page.locator('#operations-management-readHealth');
  await health.click();
  await health.getByRole('button', { name: 'Try it out' }).click();
  await health.getByRole('button', { name: 'Execute' }).click();
  await health.locator('.live-responses-table').getByText('"UP"').first().waitFor();
  assert.deepEqual(troubles, []);
});

test('GraphiQL and the reference have the colours of the console, in light and dark', { skip }, async () => {
  await promisify(execFile)(process.execPath, ['scripts/build-pages.ts'], { cwd: root });
  await using service = await startTestService({ env: { MANAGEMENT_INCLUDE: 'docs' } });
  await service.listen();
  await using browser = await launchBrowser();
  const { graphql, management } = service.urls;
  for (const [url, ready, colour] of [
    [`${management}/actuator/docs`, '.opblock', 'getComputedStyle(document.body).backgroundColor'],
    [
      `${graphql}/graphql`,
      '.graphiql-execute-button',
      "getComputedStyle(document.querySelector('.graphiql-execute-button')).backgroundColor",
    ],
  ] as const) {
    await using context = await browser.newContext({ colorScheme: 'light' });
    const { page, troubles } = await openPage(context, url);
    await page.locator(ready).first().waitFor();
    const icon = await page.evaluate<string>("document.querySelector('link[rel=icon]').href");
    assert.match(icon, /fill='%233451d1'/);
    const isDocs = url.endsWith('/docs');
    assert.equal(await page.evaluate(colour), isDocs ? 'rgb(246, 247, 249)' : 'rgb(51, 80, 209)');
    await page.emulateMedia({ colorScheme: 'dark' });
    await until(page, `${colour} === '${isDocs ? 'rgb(15, 18, 22)' : 'rgb(143, 163, 255)'}'`);
    assert.deepEqual(troubles, []);
  }
});

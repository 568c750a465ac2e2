import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { fillSqlite } from '../../support/fill-sqlite.ts';
import { startForwarder } from '../../support/forwarder.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { goTo, openConsole } from './console-page.ts';
import { deliver, startDemo } from './demo.ts';
import type { Stage } from './stage.ts';

/** What would run, if any of it were taken for HTML, a link or a style. */
const HOSTILE = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>"'><svg onload=alert(1)>\u202e{{7*7}}`;

/** The console and what comes from outside, each on a service of its own. */
export function outsideSuite(stage: Stage): void {
  it('shows hostile deliveries, names and log entries as text', async () => {
    await using receiver = await startReceiver({ '/': (response) => response.writeHead(410).end(HOSTILE) });
    await using service = await startDemo({ invoices: `${receiver.url}/` });
    await fetch(`${service.urls.webhook}/webhook`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-request-id': encodeURI(HOSTILE).replaceAll('%3C', '<').replaceAll('%3E', '>'),
      },
      body: JSON.stringify({ event: 'invoice_sent', data: HOSTILE }),
    });
    await deliver(service, HOSTILE, { [HOSTILE]: HOSTILE, __proto__: 1 });
    await fetch(`${service.urls.rest}/users`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: HOSTILE, email: `${HOSTILE}@example.org` }),
    });
    await fetch(`${service.urls.rest}/${encodeURIComponent(HOSTILE)}`);
    service.current.log.error({ err: new Error(HOSTILE), [HOSTILE]: HOSTILE }, HOSTILE);
    await using console = await openConsole(stage.browser, service, 'deliveries');
    const { page, troubles } = console;
    const seen = page.getByText('<script>', { exact: false }).first();
    await seen.waitFor();
    await page.locator('tbody a').first().click();
    await page.locator('.json-text', { hasText: '<script>' }).first().waitFor();
    await goTo(page, 'deliveries?event=invoice_sent');
    await page.locator('tbody a').first().click();
    await page.locator('.answer', { hasText: '<script>' }).waitFor();
    await page.locator('.raw', { hasText: '<script>' }).waitFor();
    assert.equal(await page.locator('main img, main script, main svg[onload]').count(), 0);
    const named = encodeURIComponent(HOSTILE);
    for (const path of ['users', 'log', 'requests', 'overview', `users?q=${named}x`, `metrics/${named}`]) {
      await goTo(page, path);
      await page.locator('h1').waitFor();
      if (path === 'users' || path === 'log') await seen.waitFor();
      assert.equal(await page.locator('main img, main script, main svg[onload]').count(), 0, path);
      assert.match(await page.title(), /Portico console/);
    }
    await page.getByText('This meter is not available').or(page.getByText('Overview')).first().waitFor();
    // The meter that there is none of is a 404, which a browser notes.
    assert.deepEqual(
      troubles.filter((trouble) => !trouble.includes('404')),
      [],
    );
  });

  it('says when the service is lost, and goes on when it is back', async () => {
    await using service = await startDemo();
    const portOf = ({ urls }: TestService) => Number(new URL(urls.management ?? '').port);
    await using door = await startForwarder(portOf(service));
    await using console = await openConsole(
      stage.browser,
      { urls: { management: `http://127.0.0.1:${door.port}` } },
      'log',
    );
    const { page } = console;
    await page.locator('.log-line').first().waitFor();
    await page.locator('.side-foot', { hasText: 'Live' }).waitFor();
    await service.current.stop();
    // Nobody listens there.
    door.switchTo(1);
    await page.getByText('The connection to the service is lost').waitFor();
    assert.ok((await page.locator('.log-line').count()) > 0, 'what was read stays');
    await using back = await startDemo();
    back.current.log.info('the service is back');
    door.switchTo(portOf(back));
    await page.locator('.log-line', { hasText: 'the service is back' }).waitFor();
    await page.getByText('The connection to the service is lost').waitFor({ state: 'detached' });
  });

  it('every page recovers after an outage, also one that was opened during it', async () => {
    await using folder = await temporaryFolder();
    const env = { DATABASE_URL: `sqlite:${join(folder.path, 'portico.db')}` };
    const first = await startDemo({ env });
    const portOf = ({ urls }: TestService) => Number(new URL(urls.management ?? '').port);
    await using door = await startForwarder(portOf(first));
    const urls = { management: `http://127.0.0.1:${door.port}` };
    await deliver(first, 'new_commit', {});
    await fetch(`${first.urls.rest}/users`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Ada', email: 'ada@example.com' }),
    });
    await using console = await openConsole(stage.browser, { urls }, 'deliveries');
    const { page } = console;
    await page.locator('tbody tr').first().waitFor();
    await first.current.stop();
    door.switchTo(1);
    const lost = page.getByText('The connection to the service is lost');
    await lost.waitFor();
    assert.ok((await page.locator('tbody tr').count()) > 0, 'the list stays');
    const pages: readonly (readonly [path: string, content: string])[] = [
      ['overview', '.figure'],
      ['users', 'tbody tr'],
      ['deliveries?status=done', 'tbody tr'],
      ['rules', 'tbody tr'],
      ['requests', 'main .card'],
      ['loggers', 'tbody tr'],
      ['log', '.log'],
      ['metrics', '.meters li'],
      ['environment', 'tbody tr'],
      ['threads', '.stack li'],
    ];
    for (const [path, content] of pages) {
      door.switchTo(1);
      await lost.waitFor();
      await goTo(page, path);
      if (content === 'tbody tr')
        await page.locator('.empty', { hasText: 'cannot be read' }).first().waitFor();
      await using back = await startDemo({ env });
      door.switchTo(portOf(back));
      await page.locator(content).first().waitFor();
      await lost.waitFor({ state: 'detached' });
      await back.current.stop();
    }
    await first[Symbol.asyncDispose]();
  });

  it('says in words what is wrong with the health of the service', async () => {
    await using service = await startDemo({ checks: "printer: () => { throw new Error('Out of paper') }" });
    await using console = await openConsole(stage.browser, service, 'overview');
    const { page } = console;
    await page.locator('.verdict', { hasText: '1 of 6 checks fails: printer.' }).waitFor();
    await page.locator('.components li', { hasText: 'Out of paper' }).getByText('DOWN').waitFor();
  });

  it('lists the other processes that the database knows of', async () => {
    await using service = await startDemo();
    await using console = await openConsole(stage.browser, service, 'requests');
    const { page } = console;
    await page.route('**/api/about', async (route) => {
      const response = await route.fetch();
      const about = await response.json();
      const since = new Date().toISOString();
      const own = `${about.process.host.replace(/[^\w.-]/g, '').slice(0, 40)}/${about.process.pid}`;
      const processes = [
        { name: own, since },
        { name: 'other/7', since },
      ];
      await route.fulfill({ response, json: { ...about, processes } });
    });
    await page.goto(`${console.url}#/overview`);
    await page.reload();
    await page.getByText('one of 2').waitFor();
    await page
      .locator('tr', { hasText: `/${process.pid}` })
      .getByText('this one')
      .waitFor();
    await page.locator('tr', { hasText: 'other/7' }).getByText('no', { exact: true }).waitFor();
  });

  it('asks for nothing while its tab is hidden', async () => {
    await using service = await startDemo();
    await using console = await openConsole(stage.browser, service, 'log');
    const { page } = console;
    await page.locator('.side-foot', { hasText: 'Live' }).waitFor();
    const hide = (isHidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));`,
      );
    await hide(true);
    await page.locator('.side-foot', { hasText: 'Paused' }).waitFor();
    service.current.log.info('while nobody looked');
    await hide(false);
    await page.locator('.log-line', { hasText: 'while nobody looked' }).waitFor();
    assert.equal(await page.locator('.log-line', { hasText: 'while nobody looked' }).count(), 1);
  });

  it('asks for credentials where the door is secured, and hides every action from who may only read', async () => {
    await using service = await startDemo({
      env: {
        MANAGEMENT_USER: 'reader',
        MANAGEMENT_PASSWORD: 'password',
        MANAGEMENT_CONSOLE_ROLE: 'operator',
      },
    });
    await deliver(service, 'new_commit', {});
    const context = await stage.browser.newContext({
      httpCredentials: { username: 'reader', password: 'password' },
    });
    const page = await context.newPage();
    await page.goto(`${service.urls.management}/actuator/console#/deliveries`);
    await page.locator('tbody tr').first().waitFor();
    await page.getByText('signed in as reader').waitFor();
    await page.locator('.side-foot', { hasText: 'Live' }).waitFor();
    await page.getByText('read-only').waitFor();
    assert.equal(await page.getByRole('button', { name: /Replay|Discard|Send/ }).count(), 0);
    await goTo(page, 'loggers');
    await page.locator('tbody tr').first().waitFor();
    assert.equal(await page.locator('tbody select').count(), 0);
    await goTo(page, 'users');
    await page.getByText('No users yet').waitFor();
    assert.equal(await page.getByRole('button', { name: 'New user' }).count(), 0);
    await context.close();
  });

  it('shows no users and deliveries where other doors ask for credentials, and says how to open them', async () => {
    await using service = await startTestService({ env: { WEBHOOK_SECRET: 'sesame' } });
    await service.listen();
    await using console = await openConsole(stage.browser, service, 'users');
    const { page, troubles } = console;
    for (const path of ['users', 'deliveries', 'deliveries/1']) {
      await goTo(page, path);
      await page.locator('.empty', { hasText: 'Set MANAGEMENT_USER and MANAGEMENT_PASSWORD' }).waitFor();
    }
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.locator('.side-foot', { hasText: 'Live' }).waitFor();
    // The first page is asked for before its reader is known.
    assert.deepEqual(
      troubles.filter((trouble) => !trouble.includes('403')),
      [],
    );
  });

  it('pages many deliveries and users, near and far', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'portico.db');
    await fillSqlite(file, { users: 20_000, deliveries: 6_000, search: 'keys' });
    const env = { DATABASE_URL: `sqlite:${file}`, REST_SEARCH: 'keys', WEBHOOK_RETENTION: '0' };
    await using service = await startDemo({ env });
    await using console = await openConsole(stage.browser, service, 'deliveries');
    const { page, troubles } = console;
    const first = (text: string) => page.locator('tbody tr:first-child', { hasText: text }).waitFor();
    const id = (seq: number) => String(seq).padStart(20, '0').slice(0, 18);
    await first(id(6_000));
    await page.getByRole('button', { name: 'Older' }).click();
    await page.getByRole('button', { name: 'Newest' }).waitFor();
    await goTo(page, 'deliveries?status=dead');
    await page.locator('tbody .status.bad').first().waitFor();
    await goTo(page, 'users');
    await first('name 20000');
    await page.getByRole('button', { name: 'Name', exact: true }).click();
    await first('name 1e1@x.org');
    await page.getByRole('button', { name: 'Next', exact: true }).click();
    await page.getByRole('button', { name: 'Previous', exact: true }).click();
    await first('name 1e1@x.org');
    // No index of this level answers it.
    await goTo(page, 'users?q=9999');
    await page.getByText('the operator can set REST_SEARCH').waitFor();
    assert.deepEqual(
      troubles.filter((trouble) => !trouble.includes('400')),
      [],
    );
  });
}

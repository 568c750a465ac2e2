import assert from 'node:assert/strict';
import { it } from 'node:test';
import { goTo, openConsole } from './console-page.ts';
import { deliver, startDemo } from './demo.ts';
import type { Stage } from './stage.ts';

/** What would run, if any of it were taken for HTML, a link or a style. */
const HOSTILE = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>"'><svg onload=alert(1)>\u202e{{7*7}}`;

/** The console and what comes from outside, each on a service of its own. */
export function outsideSuite(stage: Stage): void {
  it('shows hostile deliveries, names and log entries as text', async () => {
    await using service = await startDemo();
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
    for (const path of ['users', 'log', 'requests', 'overview', `metrics/${encodeURIComponent(HOSTILE)}`]) {
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
    const port = new URL(service.urls.management ?? '').port;
    await using console = await openConsole(stage.browser, service, 'log');
    const { page } = console;
    await page.locator('.log-line').first().waitFor();
    await page.locator('.side-foot', { hasText: 'Live' }).waitFor();
    await service.current.stop();
    await page.getByText('The connection to the service is lost').waitFor();
    assert.ok((await page.locator('.log-line').count()) > 0, 'what was read stays');
    await using back = await startDemo({ env: { MANAGEMENT_PORT: port } });
    back.current.log.info('the service is back');
    await page.locator('.log-line', { hasText: 'the service is back' }).waitFor();
    await page.getByText('The connection to the service is lost').waitFor({ state: 'detached' });
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
    await page.locator('.side-foot', { hasText: 'Resting' }).waitFor();
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
}

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { startTestService } from '../support/service.ts';

const executablePath = '/usr/bin/chromium';
const skip = existsSync(executablePath)
  ? false
  : `${executablePath} is not there; install it with: apt-get install chromium`;

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A service whose GraphQL door is at `path`; `asked` lists the paths that were requested. */
async function startServer(path: string) {
  const service = await startTestService({ env: { INTERFACES: 'graphql', GRAPHQL_PATH: path } });
  const asked: string[] = [];
  service.current.doors.graphql?.addHook('onRequest', async (request) => {
    asked.push(`${request.method} ${request.url}`);
  });
  await service.listen();
  return {
    url: `${service.urls.graphql}${path}`,
    asked,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

/** Opens the page and gathers what must not happen: console errors, refusals by the policy, foreign requests. */
async function openPage(context: BrowserContext, url: string) {
  const page = await context.newPage();
  const troubles: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => troubles.push(`uncaught: ${error.message}`));
  context.on('request', (request) => {
    const target = request.url();
    const local = target.startsWith(`${new URL(url).origin}/`) || target.startsWith('data:');
    if (!local) troubles.push(`request: ${target}`);
  });
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective, e.blockedURI))",
  );
  await page.goto(url);
  return { page, troubles };
}

const queryEditor = '.graphiql-query-editor .monaco-editor';

const resultLine = '.result-window .view-line';

/** The lines of the result, as they are drawn: Monaco draws spaces as no-break spaces. */
async function result(page: Page): Promise<string> {
  const lines = await page.locator(resultLine).allTextContents();
  return lines.join('\n').replaceAll('\u00a0', ' ');
}

async function runQuery(page: Page): Promise<string> {
  await page.locator(queryEditor).waitFor();
  await page.getByRole('button', { name: /^Execute query/ }).click();
  await page.locator(resultLine, { hasText: 'email' }).first().waitFor();
  return result(page);
}

/** GraphiQL takes over a tab's operation a moment later than it shows it, together with what it stores. */
async function stored(page: Page, path: string, start: string): Promise<void> {
  const query = `localStorage.getItem('portico:${path}:graphiql:query')?.startsWith(${JSON.stringify(start)})`;
  while (!(await page.evaluate<boolean>(query))) await setTimeout(20);
}

/** The fields that the documentation explorer lists for a root type. */
async function documentedFields(page: Page, type: string): Promise<readonly string[]> {
  const explorer = page.locator('.graphiql-doc-explorer');
  await explorer.getByRole('link', { name: type, exact: true }).click();
  await explorer.locator('.graphiql-doc-explorer-title', { hasText: type }).waitFor();
  const fields = await explorer.locator('.graphiql-doc-explorer-field-name').allInnerTexts();
  await explorer.locator('.graphiql-doc-explorer-back').click();
  return fields;
}

describe('GraphiQL in a browser', { skip, timeout: 60_000 }, () => {
  let browser: Browser;

  before(async () => {
    await promisify(execFile)(process.execPath, ['scripts/build-graphiql.ts'], { cwd: root });
    browser = await chromium.launch({
      executablePath,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        // No name resolves: whatever the page wants from elsewhere fails and is seen as an error.
        '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      ],
    });
  });
  after(() => browser?.close());

  it('runs the first query, documents the schema and completes fields', async () => {
    await using server = await startServer('/graphql');
    await using context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const { page, troubles } = await openPage(context, server.url);
    assert.equal(await page.title(), 'Portico GraphQL');

    assert.match(await runQuery(page), /"hello": "Hello from Portico!"[\s\S]*"name": "Ada Lovelace"/);

    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    assert.deepEqual(await documentedFields(page, 'Query'), ['hello', 'users', 'user']);
    assert.deepEqual(await documentedFields(page, 'Mutation'), ['createUser']);
    assert.deepEqual(await documentedFields(page, 'Subscription'), ['userCreated']);
    await page.screenshot({ path: `${root}build/graphiql.png` });

    await page.locator(queryEditor).click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('{ use');
    const suggestions = page.locator('.suggest-widget.visible');
    await suggestions.getByRole('option', { name: 'users', exact: true }).waitFor();
    await suggestions.getByRole('option', { name: 'user', exact: true }).waitFor();
    await page.screenshot({ path: `${root}build/graphiql-completion.png` });

    for (const worker of ['editor', 'json', 'graphql']) {
      const pattern = new RegExp(`^GET /graphql/assets/${worker}\\.worker-`);
      assert.ok(
        server.asked.some((request) => pattern.test(request)),
        `The ${worker} worker was not loaded.`,
      );
    }
    assert.deepEqual(troubles, []);
  });

  it('runs a mutation with its variables at another path, in the dark', async () => {
    await using server = await startServer('/api/query');
    await using context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      colorScheme: 'dark',
    });
    const { page, troubles } = await openPage(context, server.url);
    await runQuery(page);
    await page.locator(`${queryEditor}.vs-dark`).waitFor();

    await page.getByRole('tab', { name: 'CreateUser' }).click();
    await stored(page, '/api/query', 'mutation');
    assert.match(await runQuery(page), /"createUser": \{\s+"id": "3",\s+"name": "Ada"/);
    await page.screenshot({ path: `${root}build/graphiql-dark.png` });

    assert.equal(server.asked.filter((request) => request === 'POST /api/query').length, 3);
    assert.deepEqual(troubles, []);
  });

  it('shows each event of a subscription, until it is stopped', async () => {
    await using server = await startServer('/graphql');
    await using context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const { page, troubles } = await openPage(context, server.url);
    await page.locator(queryEditor).waitFor();
    await page.getByRole('tab', { name: 'UserCreated' }).click();
    await stored(page, '/graphql', '# Shows each user');
    const opened = page.waitForResponse((response) => response.request().method() === 'POST');
    await page.getByRole('button', { name: /^Execute query/ }).click();
    assert.equal((await opened).headers()['content-type'], 'text/event-stream; charset=utf-8');
    for (const name of ['Grace', 'Edsger']) {
      const query = `mutation { createUser(name: "${name}", email: "${name}@example.org") { id } }`;
      const headers = { 'content-type': 'application/json' };
      await fetch(server.url, { method: 'POST', headers, body: JSON.stringify({ query }) });
      await page.locator(resultLine, { hasText: name }).first().waitFor();
      assert.match(await result(page), new RegExp(`"userCreated": \\{\\s+"id": "\\d",\\s+"name": "${name}"`));
    }
    await page.screenshot({ path: `${root}build/graphiql-subscription.png` });
    const ended = page.waitForEvent('requestfailed');
    await page.getByRole('button', { name: /^Stop query/ }).click();
    await ended;
    await page.getByRole('button', { name: /^Execute query/ }).waitFor();
    assert.deepEqual(troubles, []);
  });

  it('shows what a server answers that sends no JSON', async () => {
    await using server = await startServer('/graphql');
    await using context = await browser.newContext();
    await context.route('**/graphql', (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({ status: 502, body: '<h1>Bad gateway</h1>' })
        : route.continue(),
    );
    const { page } = await openPage(context, server.url);
    await page.locator(queryEditor).waitFor();
    await page.getByRole('button', { name: /^Execute query/ }).click();
    await page.locator(resultLine, { hasText: 'message' }).first().waitFor();
    assert.match(await result(page), /"The server answered 502/);
  });
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { waitFor } from '../support/wait-for.ts';
import { layoutProblems, widthOf } from './layout.ts';
import {
  documentedFields,
  drawn,
  launchBrowser,
  openPage,
  queryEditor,
  result,
  resultLine,
  root,
  runQuery,
  skip,
  startServer,
  stored,
  variablesEditor,
} from './support.ts';

type Server = Awaited<ReturnType<typeof startServer>>;

describe('GraphiQL in a browser', { skip, timeout: 900_000 }, () => {
  let browser: Browser;
  /** A page that several tests go on with, because to load it takes longer than most of them. */
  let shared: Awaited<ReturnType<typeof openPage>> & { readonly server: Server };
  const opened = new AsyncDisposableStack();

  before(async () => {
    await promisify(execFile)(process.execPath, ['scripts/build-pages.ts'], { cwd: root });
    browser = opened.adopt(await launchBrowser(), (each) => each.close());
    const server = opened.use(await startServer('/graphql'));
    const context = opened.use(await browser.newContext({ viewport: { width: 1280, height: 800 } }));
    shared = { server, ...(await openPage(context, server.url)) };
  });
  after(() => opened.disposeAsync());

  it('runs the first query, documents the schema and completes fields', async () => {
    const { page, troubles, server } = shared;
    assert.equal(await page.title(), 'Portico GraphQL');

    assert.match(await runQuery(page), /"hello": "Hello from Portico!"[\s\S]*"name": "Ada Lovelace"/);

    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
    assert.deepEqual(await documentedFields(page, 'Query'), ['hello', 'users', 'user']);
    assert.deepEqual(await documentedFields(page, 'Mutation'), ['createUser']);
    assert.deepEqual(await documentedFields(page, 'Subscription'), [
      'userCreated',
      'userUpdated',
      'userDeleted',
    ]);

    await page.locator(queryEditor).click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('{ use');
    const suggestions = page.locator('.suggest-widget.visible');
    await suggestions.getByRole('option', { name: 'users', exact: true }).waitFor();
    await suggestions.getByRole('option', { name: 'user', exact: true }).waitFor();

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

    assert.equal(server.asked.filter((request) => request === 'POST /api/query').length, 3);
    assert.deepEqual(troubles, []);
  });

  it('opens with a list and a create of a relation that is declared', async () => {
    const relations = { books: { columns: { title: { type: 'text', max: 20 } } } };
    await using server = await startServer('/graphql', `export default ${JSON.stringify({ relations })};`);
    await using context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const { page, troubles } = await openPage(context, server.url);
    assert.match(await runQuery(page, 'books'), /"books": \[\]/);
    await page.getByRole('tab', { name: 'CreateBook' }).click();
    await stored(page, '/graphql', 'mutation');
    assert.match(await runQuery(page, 'title'), /"createBook": \{\s+"id": "1",\s+"title": "Ada Lovelace"/);
    assert.deepEqual(troubles, []);
  });

  it('shows each event of a subscription, until it is stopped', async () => {
    const { page, troubles, server } = shared;
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
    const ended = page.waitForEvent('requestfailed');
    await page.getByRole('button', { name: /^Stop query/ }).click();
    await ended;
    await page.getByRole('button', { name: /^Execute query/ }).waitFor();
    assert.deepEqual(troubles, []);
  });

  it('shows what a server answers that sends no JSON', async () => {
    const { page } = shared;
    await page.getByRole('tab', { name: 'UserById' }).click();
    await stored(page, '/graphql', 'query UserById');
    await page.route('**/graphql', (route) => route.fulfill({ status: 502, body: '<h1>Bad gateway</h1>' }));
    await page.getByRole('button', { name: /^Execute query/ }).click();
    await page.locator(resultLine, { hasText: 'message' }).first().waitFor();
    assert.match(await result(page), /"The server answered 502/);
    await page.unroute('**/graphql');
  });

  it('fills a tab with a link and runs nothing by itself', async () => {
    const { page, troubles, server } = shared;
    troubles.length = 0;
    server.asked.length = 0;
    const query = 'mutation Make($name: String!) { createUser(name: $name, email: "a@b") { id email } }';
    const link = `${server.url}?${new URLSearchParams({ query, variables: '{"name": "Ada"', headers: '{"x":"y"}' })}`;
    // Cleared by the next page: the one before may still store its tabs.
    await page.addInitScript(`
      if (sessionStorage.getItem('cleared') === null) localStorage.clear();
      sessionStorage.setItem('cleared', 'yes');`);
    await page.goto(link);
    await page.locator(resultLine).first().waitFor();
    assert.equal(await drawn(page, '.graphiql-query-editor'), query);
    assert.equal(await drawn(page, variablesEditor), '{"name": "Ada"');
    const tabs = page.getByRole('tab');
    assert.deepEqual(await tabs.allInnerTexts(), ['Make', 'Users', 'UserById', 'CreateUser', 'UserCreated']);

    // Variables that are no JSON are not sent; corrected, they make the next user.
    await page.getByRole('button', { name: /^Execute query/ }).click();
    await page.locator(resultLine, { hasText: 'Request not sent' }).waitFor();
    await page.locator(`${variablesEditor} .monaco-editor`).click();
    await page.keyboard.press('ControlOrMeta+End');
    await page.keyboard.type('}');
    assert.match(await runQuery(page), /"id": "5"/);
    const posts = server.asked.filter((request) => request.startsWith('POST'));
    assert.deepEqual(posts, ['POST /graphql', 'POST /graphql'], 'the schema and what was run');
    assert.deepEqual(troubles, []);
  });

  it('selects the operation that a link names, beside the tabs and without the headers of before', async () => {
    const { page, troubles, server } = shared;
    // GraphiQL stores the tabs a moment later than it shows them.
    const stored = `localStorage.getItem('portico:/graphql:graphiql:tabState')?.includes('UserById') === true`;
    // The policy of the page forbids what the browser's own wait evaluates.
    await waitFor('the tabs to be stored', () => page.evaluate<boolean>(stored));
    await page.evaluate(`
      localStorage.setItem('portico:/graphql:graphiql:headers', '{"x-secret":"1"}');
      localStorage.setItem('portico:/graphql:graphiql:variables', '{"old":1}');`);
    const query = 'query One { hello }\nquery Two { users { email } }\n';
    const headers: string[] = [];
    await page.route('**/graphql', (route) => {
      headers.push(...Object.keys(route.request().headers()));
      return route.continue();
    });
    await page.goto(`${server.url}?${new URLSearchParams({ query, operationName: 'Two' })}`);
    await page.getByRole('tab', { name: 'Two', selected: true }).waitFor();
    assert.equal(await drawn(page, variablesEditor), '');
    assert.deepEqual((await page.getByRole('tab').allInnerTexts()).slice(0, 2), ['Make', 'Users']);
    await page.locator(`${queryEditor} textarea`).first().focus();
    await page.keyboard.press('ControlOrMeta+Enter');
    await page.locator(resultLine, { hasText: 'email' }).first().waitFor();
    assert.doesNotMatch(await result(page), /hello/);
    assert.ok(headers.includes('accept') && !headers.includes('x-secret'));
    assert.deepEqual(troubles, []);
  });

  it('has room on a phone for the editors, the result and the documentation', async () => {
    await using server = await startServer('/graphql');
    await using context = await browser.newContext({
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    });
    const { page, troubles } = await openPage(context, server.url);
    const tap = (name: string) => page.getByRole('button', { name }).tap();
    const session = [
      ...['.graphiql-session-header', '.graphiql-query-editor .graphiql-editor', '.graphiql-execute-button'],
      ...['.graphiql-toolbar > :last-child', '.graphiql-editor-tools', '.graphiql-editor-tool'],
      ...['.graphiql-response', '.graphiql-sidebar'],
    ];
    await page.locator(queryEditor).waitFor();
    await tap('Execute query');
    await page.locator(resultLine, { hasText: 'alan@example.com' }).waitFor();
    assert.deepEqual(await layoutProblems(page, session), []);
    assert.ok((await widthOf(page, '.graphiql-response')) > 350);
    assert.ok((await widthOf(page, '.graphiql-query-editor')) > 350);

    await tap('Show Documentation Explorer');
    const docs = ['.graphiql-doc-explorer-title', '.graphiql-doc-explorer-search', '.graphiql-sidebar'];
    assert.deepEqual(await layoutProblems(page, docs), []);
    assert.deepEqual(await documentedFields(page, 'Mutation'), ['createUser']);
    assert.ok((await widthOf(page, '.graphiql-doc-explorer')) > 350);
    await tap('Hide Documentation Explorer');
    assert.deepEqual(await layoutProblems(page, session), []);

    await tap('Open settings dialog');
    const settings = ['.graphiql-dialog-close', '#disable-persist-headers', '[data-theme="dark"]'];
    assert.deepEqual(await layoutProblems(page, [...settings, '.graphiql-dialog-section > button']), []);
    assert.deepEqual(troubles, []);
  });
});

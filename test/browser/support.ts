import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { startTestService } from '../support/service.ts';
import { waitFor } from '../support/wait-for.ts';

const executablePath = '/usr/bin/chromium';
/** Why the tests cannot run here, if they cannot. */
export const skip = existsSync(executablePath)
  ? false
  : `${executablePath} is not there; install it with: apt-get install chromium`;

/** The project's folder. */
export const root = fileURLToPath(new URL('../../', import.meta.url));

/** A service whose GraphQL door is at `path`; `asked` lists the paths that were requested. */
export async function startServer(path: string, module?: string) {
  const env = { INTERFACES: 'graphql', GRAPHQL_PATH: path };
  const service = await startTestService({ env, ...(module === undefined ? {} : { module }) });
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
export async function openPage(context: BrowserContext, url: string) {
  const page = await context.newPage();
  // Five megabytes of script take long on a busy machine.
  page.setDefaultTimeout(60_000);
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

/** Waits until an expression is true on the page; its policy keeps Playwright's own way from asking twice. */
export async function until(page: Page, expression: string): Promise<void> {
  await waitFor(expression, () => page.evaluate<boolean>(expression), 60_000);
}

export const queryEditor = '.graphiql-query-editor .monaco-editor';

export const variablesEditor = '.graphiql-editor-tool > .graphiql-editor:first-child';

export const resultLine = '.result-window .view-line';

/** The lines of an editor as they are drawn: Monaco draws spaces as no-break spaces. */
export async function drawn(page: Page, pane: string): Promise<string> {
  const lines = await page.locator(`${pane} .view-line`).allTextContents();
  return lines.join('\n').replaceAll('\u00a0', ' ');
}

export const result = (page: Page): Promise<string> => drawn(page, '.result-window');

/** Runs the operation that is shown, and returns its result once it has this text. */
export async function runQuery(page: Page, hasText = 'email'): Promise<string> {
  await page.locator(queryEditor).waitFor();
  await page.getByRole('button', { name: /^Execute query/ }).click();
  await page.locator(resultLine, { hasText }).first().waitFor();
  return result(page);
}

/** GraphiQL takes over a tab's operation a moment later than it shows it, together with what it stores. */
export async function stored(page: Page, path: string, start: string): Promise<void> {
  const query = `localStorage.getItem('portico:${path}:graphiql:query')?.startsWith(${JSON.stringify(start)})`;
  while (!(await page.evaluate<boolean>(query))) await setTimeout(20);
}

/** The fields that the documentation explorer lists for a root type. */
export async function documentedFields(page: Page, type: string): Promise<readonly string[]> {
  const explorer = page.locator('.graphiql-doc-explorer');
  await explorer.getByRole('link', { name: type, exact: true }).click();
  await explorer.locator('.graphiql-doc-explorer-title', { hasText: type }).waitFor();
  const fields = await explorer.locator('.graphiql-doc-explorer-field-name').allInnerTexts();
  await explorer.locator('.graphiql-doc-explorer-back').click();
  return fields;
}

/** Launches a browser in which no name resolves but `hosts` and what `rules` map: what a page wants from elsewhere fails. */
export function launchBrowser(
  hosts: readonly string[] = ['127.0.0.1'],
  rules: readonly string[] = [],
): Promise<Browser> {
  const resolved = [...rules, 'MAP * ~NOTFOUND', ...hosts.map((host) => `EXCLUDE ${host}`)];
  return chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      `--host-resolver-rules=${resolved.join(', ')}`,
    ],
  });
}

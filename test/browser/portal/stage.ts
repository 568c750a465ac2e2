import type { Browser, BrowserContext } from 'playwright-core';
import { startReceiver } from '../../support/receiver.ts';
import { type SendingService, startSending } from '../../support/sending.ts';
import { waitFor } from '../../support/wait-for.ts';
import { buildConsole, WIDE } from '../console/console-page.ts';
import { launchBrowser, openPage } from '../support.ts';

/** Texts that a page must show as texts. */
export const HOSTILE = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>`;

const PAID = {
  description: 'An invoice was paid in full.',
  schema: { type: 'object', required: ['invoice'], properties: { invoice: { type: 'string' } } },
  example: { invoice: 'R-2291', amount: 148.75, customer: { id: 'cus_45', country: 'DE' } },
};

/** The receivers and endpoints of two tenants, of which the portal shows those of `acme`. */
export class PortalStage implements AsyncDisposable {
  readonly #opened = new AsyncDisposableStack();
  #parts:
    | {
        readonly browser: Browser;
        readonly sending: SendingService;
        readonly receiver: Awaited<ReturnType<typeof startReceiver>>;
        readonly working: string;
        readonly failing: string;
      }
    | undefined;

  /** `origins` are those of pages that may embed the portal. */
  async open(origins: readonly string[] = []): Promise<void> {
    await buildConsole();
    const receiver = this.#opened.use(
      await startReceiver({
        '/broken': (response) => response.writeHead(503).end('The ledger is being closed'),
        '/gone': (response) => response.writeHead(410).end(),
      }),
    );
    const sending = this.#opened.use(
      await startSending(undefined, {
        attempts: 2,
        transforms: { 'data-only': { body: '/data' } },
        portal: { port: 0, title: 'Acme webhooks', origins },
      }),
    );
    const browser = this.#opened.adopt(await launchBrowser(['127.0.0.1', '127.0.0.2', '127.0.0.3']), (each) =>
      each.close(),
    );
    await sending.call('PUT', '/webhooks/event-types/invoice.paid', PAID);
    await sending.call('PUT', '/webhooks/event-types/invoice.sent', { description: 'An invoice was sent.' });
    await sending.call('PUT', '/webhooks/event-types/customer.created', { description: HOSTILE });
    const before = { tenant: 'acme', type: 'invoice.paid', data: { invoice: 'R-1', amount: 1 } };
    await sending.publish(before);
    const { id: working } = await sending.endpoint('acme', {
      url: `${receiver.url}/books`,
      description: 'The books',
      types: ['invoice.paid', 'customer.*'],
      headers: { 'x-environment': 'production' },
    });
    const { id: failing } = await sending.endpoint('acme', {
      url: `${receiver.url}/broken`,
      description: HOSTILE,
    });
    await sending.endpoint('acme', { url: `${receiver.url}/gone`, types: ['invoice.paid'] });
    await sending.endpoint('other', { url: `${receiver.url}/foreign` });
    for (const i of [2, 3])
      await sending.publish({
        tenant: 'acme',
        type: 'invoice.paid',
        data: { invoice: `R-${i}`, amount: i * 10, note: HOSTILE },
      });
    await sending.publish({ tenant: 'acme', type: 'invoice.sent', data: { invoice: 'R-6' } });
    await sending.publish({ tenant: 'other', type: 'invoice.paid', data: { invoice: 'X-1' } });
    this.#parts = { browser, sending, receiver, working, failing };
    await waitFor('all attempts', async () => {
      const { byStatus } = (await sending.call('GET', `/webhooks/tenants/acme/endpoints/${failing}/stats`))
        .body;
      return byStatus.dead === 3 && receiver.at('/books').length === 2;
    });
  }

  get #open() {
    if (this.#parts === undefined) throw new Error('The stage is not open.');
    return this.#parts;
  }

  get browser(): Browser {
    return this.#open.browser;
  }

  get sending(): SendingService {
    return this.#open.sending;
  }

  get receiver() {
    return this.#open.receiver;
  }

  /** The id of the endpoint that takes events. */
  get working(): string {
    return this.#open.working;
  }

  /** The id of the endpoint that refuses them. */
  get failing(): string {
    return this.#open.failing;
  }

  /** A link to the portal of a tenant. */
  async link(tenant = 'acme', minutes = 60): Promise<string> {
    return (await this.sending.call('POST', `/webhooks/tenants/${tenant}/portal`, { minutes })).body.url;
  }

  /** Opens the portal in a browser of its own. */
  async enter(tenant = 'acme'): Promise<PortalPage> {
    const context = await this.browser.newContext({ viewport: WIDE, reducedMotion: 'reduce' });
    const opened = await openPage(context, await this.link(tenant));
    await opened.page.locator('h1').waitFor();
    return { ...opened, context, [Symbol.asyncDispose]: () => context.close() };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.disposeAsync();
  }
}

/** An open portal, and what has gone wrong in it so far. */
export type PortalPage = Awaited<ReturnType<typeof openPage>> & {
  readonly context: BrowserContext;
} & AsyncDisposable;

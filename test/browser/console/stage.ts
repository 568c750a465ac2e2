import type { Browser } from 'playwright-core';
import type { TestService } from '../../support/service.ts';
import { launchBrowser } from '../support.ts';
import { buildConsole, type Console, openConsole } from './console-page.ts';
import { fill, startBilling, startDemo } from './demo.ts';

/** What the tests of the console share: to start it for each would take longer than all of them. */
export class Stage implements AsyncDisposable {
  readonly #opened = new AsyncDisposableStack();
  #parts: { readonly browser: Browser; readonly service: TestService; readonly shared: Console } | undefined;

  async open(): Promise<void> {
    await buildConsole();
    const billing = this.#opened.use(await startBilling());
    const service = this.#opened.use(await startDemo({ invoices: billing.url }));
    const browser = this.#opened.adopt(await launchBrowser(), (opened) => opened.close());
    await fill(service);
    this.#parts = { browser, service, shared: await openConsole(browser, service) };
  }

  get browser(): Browser {
    return this.#open.browser;
  }

  /** A service with a little of everything. */
  get service(): TestService {
    return this.#open.service;
  }

  /** The console of that service. */
  get shared(): Console {
    return this.#open.shared;
  }

  get #open() {
    if (this.#parts === undefined) throw new Error('The stage is not open.');
    return this.#parts;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.disposeAsync();
  }
}

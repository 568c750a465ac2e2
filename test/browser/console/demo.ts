import { type Answer, startReceiver } from '../../support/receiver.ts';
import { startTestService, type TestService } from '../../support/service.ts';

export interface DemoOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Health checks of its own, as its module has them. */
  readonly checks?: string;
  /** Where invoices are forwarded to. */
  readonly invoices?: string;
}

const module = ({ checks = '', invoices }: DemoOptions) => `
export default {
  relations: {
    notes: {
      columns: {
        title: { type: 'text', max: 80 },
        owner: { type: 'text', max: 40, set: { caller: '/sub' } },
        rank: { type: 'integer', nullable: true, read: { scope: 'staff' }, write: { scope: 'staff' } },
      },
      rules: {
        read: [{ scope: 'staff' }, { where: { owner: { caller: '/sub' } } }],
        create: 'anyone',
        update: { where: { owner: { caller: '/sub' } } },
        delete: 'nobody',
      },
    },
  },
  management: { healthChecks: {${checks}} },
  webhook: {
    handlers: {
      new_commit: async () => {},
      payment_received: async (delivery) => {
        if (delivery.data.amount > 900) throw new Error('The bank refused ' + delivery.data.amount + ' EUR: limit reached');
      },
    },
    sources: {
      github: { scheme: 'github', secrets: 'github-secret-of-the-demo' },
      stripe: { scheme: 'stripe', secrets: 'whsec_of_the_demo' },
    },
    forward: ${invoices === undefined ? '{}' : `{ billing: { url: '${invoices}', events: ['invoice_sent'], attempts: 3, allowPrivate: true } }`},
  },
};
`;

/** Who logs in to the console: signed sources close its users and deliveries to everybody else. */
export const VISITOR = { username: 'visitor', password: 'password' };

/** The same, for requests of programs. */
export const AS_VISITOR = {
  headers: { authorization: `Basic ${btoa(`${VISITOR.username}:${VISITOR.password}`)}` },
};

/** A service with a little of everything to look at. */
export async function startDemo(options: DemoOptions = {}): Promise<TestService> {
  const service = await startTestService({
    module: module(options),
    env: {
      WEBHOOK_ATTEMPTS: '1',
      WEBHOOK_BACKOFF: '40',
      WEBHOOK_HEADERS: 'user-agent,x-request-id',
      LOG_LEVEL: 'info',
      MANAGEMENT_USER: VISITOR.username,
      MANAGEMENT_PASSWORD: VISITOR.password,
      ...options.env,
    },
  });
  await service.listen();
  return service;
}

/** Refuses the first attempt, and takes the next. */
const late: Answer = (response, attempt) => {
  if (attempt === 1) response.writeHead(503).end('The ledger is being closed; try again later.');
  else response.writeHead(200).end('Booked as R-2291.');
};

/** A receiver of invoices that is busy at first. */
export async function startBilling() {
  const receiver = await startReceiver({ '/invoices': late });
  return { url: `${receiver.url}/invoices`, [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose]() };
}

/** Posts a delivery to /webhook. */
export async function deliver(service: TestService, event: string, data: unknown): Promise<void> {
  const response = await fetch(`${service.urls.webhook}/webhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'user-agent': 'shop/3.4', 'x-request-id': 'order-7781' },
    body: typeof data === 'string' ? data : JSON.stringify({ event, data }),
  });
  await response.text();
}

/** Some users, deliveries of all kinds, and requests that succeed and fail. */
export async function fill(service: TestService): Promise<void> {
  const names = ['Ada Lovelace', 'Alan Turing', 'Grace Hopper', 'Edsger Dijkstra', 'Barbara Liskov'];
  for (const name of names) {
    const email = `${name.split(' ')[0]?.toLowerCase()}@example.com`;
    await fetch(`${service.urls.rest}/users`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, email }),
    }).then((response) => response.text());
  }
  for (let i = 0; i < 8; i++) {
    await deliver(service, 'new_commit', {
      repository: 'portico',
      branch: i % 3 === 0 ? 'release' : 'main',
      commits: [{ id: `9f3c${i}a7`, message: 'Plots share their cursor', author: { name: names[i % 5] } }],
      forced: false,
    });
  }
  for (const amount of [120, 45.5, 990, 18, 1_250]) {
    await deliver(service, 'payment_received', {
      amount,
      currency: 'EUR',
      customer: `cus_${amount}`,
      paid: true,
    });
  }
  await deliver(service, 'invoice_sent', { invoice: 'R-2291', total: 148.75, customer: 'cus_45.5' });
  await deliver(service, 'newsletter_opened', { campaign: 'autumn', reader: 'r-19' });
  const { rest, graphql } = service.urls;
  for (const path of ['/users', '/users/1', '/users/2', '/users/77', '/nowhere']) {
    await fetch(`${rest}${path}`).then((response) => response.text());
  }
  for (const query of ['{hello}', '{users{id name}}', '{nothing}']) {
    await fetch(`${graphql}/graphql?query=${encodeURIComponent(query)}`).then((response) => response.text());
  }
}

import type { SchemeName } from './config.ts';

/** A made-up event in the form in which its sender sends it. Id and time are set when it is sent. */
export interface Sample {
  /** The event, by the sender's name. */
  readonly event: string;
  readonly body: object;
  /** Headers besides those with the event, the id and the signature. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The samples of a scheme's sender; none for a scheme without a usual sender. */
export function samplesOf(scheme: SchemeName): readonly Sample[] {
  return SAMPLES[scheme] ?? [];
}

const DAY = '2026-03-02';
const TIME = `${DAY}T09:30:00Z`;
const SECONDS = 1_772_443_800;
const COMMIT = '5f2b8c1d7e904a36b1c0f8d2a7e3946058bd1c7f';
const BEFORE = '0d9a4be713c2865f9e1b47d3a60c8f25e7b1d934';
const person = { name: 'Ada Miller', email: 'ada@example.com' };

const repository = {
  id: 4711,
  name: 'shop',
  full_name: 'acme/shop',
  private: true,
  html_url: 'https://github.com/acme/shop',
  default_branch: 'main',
  owner: { login: 'acme', id: 815 },
};
const sender = { login: 'ada', id: 42, type: 'User' };

const stripeEvent = (type: string, object: object) => ({
  event: type,
  body: {
    id: 'evt_sample',
    object: 'event',
    api_version: '2025-09-30.clover',
    created: SECONDS,
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type,
    data: { object },
  },
});

const slackEvent = (event: { readonly type: string; readonly [name: string]: unknown }) => ({
  event: event.type,
  body: {
    type: 'event_callback',
    team_id: 'T0ACME',
    api_app_id: 'A0PORTICO',
    event_id: 'Ev0SAMPLE',
    event_time: SECONDS,
    event,
  },
});

const shopHeaders = {
  'x-shopify-shop-domain': 'acme-example.myshopify.com',
  'x-shopify-api-version': '2026-01',
  'x-shopify-triggered-at': TIME,
  'x-shopify-test': 'true',
};
const order = {
  id: 5_500_000_001,
  admin_graphql_api_id: 'gid://shopify/Order/5500000001',
  name: '#1001',
  order_number: 1001,
  email: person.email,
  created_at: TIME,
  currency: 'EUR',
  subtotal_price: '40.00',
  total_tax: '7.60',
  total_price: '47.60',
  financial_status: 'pending',
  fulfillment_status: null,
  customer: { id: 6_600_000_001, email: person.email, first_name: 'Ada', last_name: 'Miller' },
  line_items: [{ id: 7_700_000_001, sku: 'CUP-1', title: 'Cup', quantity: 2, price: '20.00' }],
};

const project = {
  id: 4711,
  name: 'shop',
  web_url: 'https://gitlab.com/acme/shop',
  path_with_namespace: 'acme/shop',
  default_branch: 'main',
};
const gitlabUser = { id: 42, username: 'ada', ...person };

const paypalEvent = (event_type: string, resource_type: string, summary: string, resource: object) => ({
  event: event_type,
  body: {
    id: 'WH-SAMPLE',
    event_version: '1.0',
    create_time: TIME,
    resource_type,
    resource_version: '2.0',
    event_type,
    summary,
    resource,
  },
});
const captured = { currency_code: 'EUR', value: '47.60' };

const ACCOUNT = `AC${'0'.repeat(31)}1`;
const MESSAGE = `SM${'0'.repeat(31)}1`;
const twilioMessage = {
  AccountSid: ACCOUNT,
  ApiVersion: '2010-04-01',
  MessageSid: MESSAGE,
  SmsSid: MESSAGE,
  From: '+15005550006',
  To: '+15005550009',
};

const linearEvent = (type: string, action: string, data: object) => ({
  event: type,
  headers: { 'linear-event': type },
  body: {
    action,
    type,
    actor: { id: '0b1c2d3e-0000-4000-8000-000000000042', type: 'user', ...person },
    createdAt: TIME,
    data,
    url: 'https://linear.app/acme/issue/SHOP-7',
    organizationId: '0b1c2d3e-0000-4000-8000-000000000001',
    webhookId: '0b1c2d3e-0000-4000-8000-000000000002',
    webhookTimestamp: SECONDS * 1_000,
  },
});

const clerkUser = {
  object: 'user',
  id: 'user_sample',
  first_name: 'Ada',
  last_name: 'Miller',
  primary_email_address_id: 'idn_sample',
  email_addresses: [{ object: 'email_address', id: 'idn_sample', email_address: person.email }],
  public_metadata: {},
  created_at: SECONDS * 1_000,
  updated_at: SECONDS * 1_000,
};
const clerkEvent = (type: string, data: object) => ({
  event: type,
  body: { object: 'event', type, instance_id: 'ins_sample', timestamp: SECONDS * 1_000, data },
});

const resendEvent = (type: string, more: object = {}) => ({
  event: type,
  body: {
    type,
    created_at: TIME,
    data: {
      email_id: '0b1c2d3e-0000-4000-8000-000000000003',
      created_at: TIME,
      from: 'Acme <shop@example.com>',
      to: [person.email],
      subject: 'Your order #1001',
      ...more,
    },
  },
});

const discordUser = { id: '100000000000000042', username: 'ada', discriminator: '0', global_name: 'Ada' };
const discordEvent = (type: string, data: object) => ({
  event: type,
  body: {
    version: 1,
    application_id: '100000000000000001',
    type: 1,
    event: { type, timestamp: TIME, data },
  },
});

const SAMPLES: Partial<Readonly<Record<SchemeName, readonly Sample[]>>> = {
  standard: [
    { event: 'user.created', body: { type: 'user.created', timestamp: TIME, data: { id: 7, ...person } } },
    {
      event: 'invoice.paid',
      body: { type: 'invoice.paid', timestamp: TIME, data: { id: 1001, amount: 4_760, currency: 'eur' } },
    },
  ],
  github: [
    {
      event: 'push',
      body: {
        ref: 'refs/heads/main',
        before: BEFORE,
        after: COMMIT,
        created: false,
        deleted: false,
        forced: false,
        commits: [
          {
            id: COMMIT,
            message: 'Mend the cart',
            timestamp: TIME,
            author: person,
            added: [],
            removed: [],
            modified: ['cart.ts'],
          },
        ],
        repository,
        pusher: person,
        sender,
      },
    },
    {
      event: 'pull_request',
      body: {
        action: 'opened',
        number: 7,
        pull_request: {
          id: 70_001,
          number: 7,
          state: 'open',
          title: 'Mend the cart',
          draft: false,
          merged: false,
          user: sender,
          head: { ref: 'cart', sha: COMMIT },
          base: { ref: 'main', sha: BEFORE },
        },
        repository,
        sender,
      },
    },
    {
      event: 'issues',
      body: {
        action: 'opened',
        issue: { id: 80_001, number: 8, state: 'open', title: 'The cart is empty', labels: [], user: sender },
        repository,
        sender,
      },
    },
  ],
  stripe: [
    stripeEvent('payment_intent.succeeded', {
      id: 'pi_sample',
      object: 'payment_intent',
      amount: 4_760,
      amount_received: 4_760,
      currency: 'eur',
      customer: 'cus_sample',
      status: 'succeeded',
      metadata: { order: '1001' },
    }),
    stripeEvent('checkout.session.completed', {
      id: 'cs_test_sample',
      object: 'checkout.session',
      mode: 'payment',
      payment_status: 'paid',
      status: 'complete',
      amount_total: 4_760,
      currency: 'eur',
      customer: 'cus_sample',
      customer_details: person,
      payment_intent: 'pi_sample',
    }),
    stripeEvent('customer.subscription.deleted', {
      id: 'sub_sample',
      object: 'subscription',
      customer: 'cus_sample',
      status: 'canceled',
      canceled_at: SECONDS,
      items: { object: 'list', data: [{ id: 'si_sample', price: { id: 'price_sample' }, quantity: 1 }] },
    }),
  ],
  slack: [
    slackEvent({
      type: 'message',
      channel: 'C0SHOP',
      channel_type: 'channel',
      user: 'U0ADA',
      text: 'Is the shop up?',
      ts: `${SECONDS}.000100`,
    }),
    slackEvent({
      type: 'app_mention',
      channel: 'C0SHOP',
      user: 'U0ADA',
      text: '<@U0BOT> status',
      ts: `${SECONDS}.000200`,
    }),
  ],
  shopify: [
    { event: 'orders/create', headers: shopHeaders, body: order },
    { event: 'orders/paid', headers: shopHeaders, body: { ...order, financial_status: 'paid' } },
    {
      event: 'app/uninstalled',
      headers: shopHeaders,
      body: { id: 815, name: 'Acme', domain: 'acme-example.myshopify.com', email: person.email },
    },
  ],
  gitlab: [
    {
      event: 'push',
      headers: { 'x-gitlab-event': 'Push Hook' },
      body: {
        object_kind: 'push',
        event_name: 'push',
        ref: 'refs/heads/main',
        before: BEFORE,
        after: COMMIT,
        user_id: gitlabUser.id,
        user_username: gitlabUser.username,
        project_id: project.id,
        project,
        commits: [
          { id: COMMIT, title: 'Mend the cart', message: 'Mend the cart', timestamp: TIME, author: person },
        ],
        total_commits_count: 1,
      },
    },
    {
      event: 'merge_request',
      headers: { 'x-gitlab-event': 'Merge Request Hook' },
      body: {
        object_kind: 'merge_request',
        event_type: 'merge_request',
        user: gitlabUser,
        project,
        object_attributes: {
          id: 70_001,
          iid: 7,
          action: 'open',
          state: 'opened',
          title: 'Mend the cart',
          source_branch: 'cart',
          target_branch: 'main',
        },
      },
    },
    {
      event: 'pipeline',
      headers: { 'x-gitlab-event': 'Pipeline Hook' },
      body: {
        object_kind: 'pipeline',
        user: gitlabUser,
        project,
        object_attributes: { id: 90_001, ref: 'main', sha: COMMIT, status: 'success', duration: 61 },
        builds: [],
      },
    },
  ],
  paypal: [
    paypalEvent('PAYMENT.CAPTURE.COMPLETED', 'capture', 'Payment completed for 47.60 EUR', {
      id: 'CAPTURE0SAMPLE',
      status: 'COMPLETED',
      amount: captured,
      final_capture: true,
      create_time: TIME,
      supplementary_data: { related_ids: { order_id: 'ORDER0SAMPLE' } },
    }),
    paypalEvent('CHECKOUT.ORDER.APPROVED', 'checkout-order', 'A buyer has approved an order', {
      id: 'ORDER0SAMPLE',
      intent: 'CAPTURE',
      status: 'APPROVED',
      purchase_units: [{ reference_id: '1001', amount: captured }],
      payer: { email_address: person.email, payer_id: 'PAYER0SAMPLE' },
    }),
    paypalEvent('PAYMENT.CAPTURE.REFUNDED', 'refund', 'A refund of 47.60 EUR was made', {
      id: 'REFUND0SAMPLE',
      status: 'COMPLETED',
      amount: captured,
      create_time: TIME,
    }),
  ],
  twilio: [
    {
      event: 'message.received',
      body: {
        ...twilioMessage,
        SmsStatus: 'received',
        Body: 'Is my order on its way?',
        NumMedia: '0',
        NumSegments: '1',
      },
    },
    {
      event: 'message.delivered',
      body: { ...twilioMessage, SmsStatus: 'delivered', MessageStatus: 'delivered' },
    },
    {
      event: 'call.completed',
      body: {
        AccountSid: ACCOUNT,
        ApiVersion: '2010-04-01',
        CallSid: `CA${'0'.repeat(31)}1`,
        CallStatus: 'completed',
        CallDuration: '61',
        Direction: 'inbound',
        From: '+15005550006',
        To: '+15005550009',
      },
    },
  ],
  linear: [
    linearEvent('Issue', 'create', {
      id: '0b1c2d3e-0000-4000-8000-000000000007',
      identifier: 'SHOP-7',
      number: 7,
      title: 'The cart is empty',
      priority: 2,
      state: { name: 'Todo', type: 'unstarted' },
      team: { key: 'SHOP', name: 'Shop' },
      labels: [],
    }),
    linearEvent('Comment', 'create', {
      id: '0b1c2d3e-0000-4000-8000-000000000008',
      body: 'I can see it too.',
      issueId: '0b1c2d3e-0000-4000-8000-000000000007',
      userId: '0b1c2d3e-0000-4000-8000-000000000042',
    }),
  ],
  clerk: [
    clerkEvent('user.created', clerkUser),
    clerkEvent('user.updated', { ...clerkUser, public_metadata: { plan: 'team' } }),
    clerkEvent('user.deleted', { object: 'user', id: 'user_sample', deleted: true }),
  ],
  resend: [
    resendEvent('email.delivered'),
    resendEvent('email.bounced', {
      bounce: { type: 'Permanent', subType: 'General', message: 'The mailbox does not exist.' },
    }),
    resendEvent('email.complained'),
  ],
  discord: [
    discordEvent('APPLICATION_AUTHORIZED', {
      integration_type: 1,
      scopes: ['applications.commands'],
      user: discordUser,
    }),
    discordEvent('APPLICATION_DEAUTHORIZED', { user: discordUser }),
    discordEvent('ENTITLEMENT_CREATE', {
      id: '100000000000000007',
      sku_id: '100000000000000008',
      application_id: '100000000000000001',
      user_id: discordUser.id,
      type: 8,
      deleted: false,
      consumed: false,
    }),
  ],
};

import type { SchemeName } from '../../config/schema/webhook-sources.ts';
import type { Place, SourceLayout } from './source.ts';

const header = (name: string): Place => ({ kind: 'header', name });
const pointer = (...tokens: string[]): Place => ({ kind: 'pointer', pointer: tokens });
const none: ReadonlyMap<string, string> = new Map();

/** The body as the contract has it (contract 2.5). */
const contract: SourceLayout = {
  event: pointer('event'),
  events: none,
  data: ['data'],
  dedup: header('idempotency-key'),
};

/** The layout of each scheme's usual sender. */
const layouts: Readonly<Record<SchemeName, SourceLayout>> = {
  standard: { event: pointer('type'), events: none, data: ['data'], dedup: undefined },
  github: {
    event: header('x-github-event'),
    events: new Map([['push', 'new_commit']]),
    data: [],
    dedup: header('x-github-delivery'),
  },
  stripe: {
    event: pointer('type'),
    // A payment may come under several of these names; subscribe to one of them at Stripe, or map them here.
    // checkout.session.completed is not among them: it may come before anything is paid.
    events: new Map(
      ['payment_intent.succeeded', 'charge.succeeded', 'invoice.paid', 'invoice.payment_succeeded'].map(
        (name) => [name, 'payment_received'] as const,
      ),
    ),
    data: ['data'],
    dedup: pointer('id'),
  },
  slack: { event: pointer('event', 'type'), events: none, data: ['event'], dedup: pointer('event_id') },
  hmac: contract,
  token: contract,
};

/** The events that the sources of a scheme rename by default: by the new name, the sender's own names. */
export function renamedEvents(): readonly {
  readonly scheme: SchemeName;
  readonly event: string;
  readonly names: readonly string[];
}[] {
  return (Object.keys(layouts) as SchemeName[]).flatMap((scheme) => {
    const byEvent = Map.groupBy(layouts[scheme].events, ([, event]) => event);
    return Array.from(byEvent, ([event, renamed]) => ({
      scheme,
      event,
      names: renamed.map(([name]) => name),
    }));
  });
}

/** The defaults of a source's layout; `headerPrefix` is the one of the scheme standard. */
export function defaultLayout(scheme: SchemeName, headerPrefix = 'webhook'): SourceLayout {
  const layout = layouts[scheme];
  return scheme === 'standard' ? { ...layout, dedup: header(`${headerPrefix}-id`) } : layout;
}

/** The largest body that the usual sender of a scheme sends, in bytes; 0: not known. */
export function largestBody(scheme: SchemeName): number {
  // GitHub caps its payloads at 25 MB (docs.github.com, "Webhook events and payloads").
  return scheme === 'github' ? 25 * 1024 * 1024 : 0;
}

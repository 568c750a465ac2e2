import { read } from '../data/api.ts';
import { formatMoment } from '../data/format.ts';
import { type Data, useData } from '../data/use-data.ts';
import type { Tone } from '../parts/parts.tsx';

/** The tenant of the link, and the choices of the configuration. */
export interface Me {
  readonly tenant: string;
  /** The names of transformations. */
  readonly transforms: readonly string[];
}

/** An endpoint of the tenant. */
export interface EndpointView {
  readonly id: string;
  readonly url: string;
  readonly description?: string;
  readonly types?: readonly string[];
  readonly channels?: readonly string[];
  readonly filter?: unknown;
  readonly rate?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly order?: string;
  readonly transform?: string;
  readonly enabled: boolean;
  readonly disabledBecause: string | null;
  readonly failingSince: string | null;
  readonly createdAt: string;
}

/** An endpoint with the secret of its requests, as the reply to its creation has it. */
export interface NewEndpoint extends EndpointView {
  readonly secret: string;
}

export interface EventType {
  readonly name: string;
  readonly description?: string;
  readonly schema?: unknown;
  readonly example?: unknown;
}

/** A page of a list. */
export interface List<T> {
  readonly items: readonly T[];
  readonly next: number | null;
}

/** An event at one endpoint. */
export interface Sent {
  readonly status: string;
  readonly attempts: number;
  readonly publishedAt: string;
  readonly nextAttemptAt: string | null;
  readonly finishedAt: string | null;
  readonly error: string | null;
}

export interface EventRow {
  readonly id: string;
  readonly type: string;
  readonly publishedAt: string;
}

export interface EventView extends EventRow {
  readonly body: unknown;
  readonly endpoints: readonly (Sent & { readonly endpoint: string })[];
}

export const pathOf = (id: string) => `endpoints/${encodeURIComponent(id)}`;

/** All endpoints of the tenant, or all event types: lists that are short. */
export function useAll<T>(path: 'endpoints' | 'event-types', every?: number): Data<readonly T[]> {
  return useData<readonly T[]>(path, every, readAll);
}

async function readAll<T>(path: string, signal: AbortSignal): Promise<readonly T[]> {
  const all: T[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page: List<T> = await read(`${path}?limit=500&after=${after}`, signal);
    all.push(...page.items);
    after = page.next;
  }
  return all;
}

/** Why an endpoint is disabled, and how to go on. */
const DISABLED: Readonly<Record<string, readonly [tone: Tone, words: string, advice: string]>> = {
  manual: ['quiet', 'disabled', 'It gets no events. Enable it, then replay those that it missed.'],
  gone: [
    'bad',
    'disabled: it answered 410 Gone',
    'A receiver that answers 410 wants no more events. Mend it, enable the endpoint, then replay those that it missed.',
  ],
  failing: [
    'bad',
    'disabled: it failed for days',
    'No attempt succeeded for days. Mend the receiver, enable the endpoint, then replay the events that it missed.',
  ],
};

/** The state of an endpoint as a colour and a word, and what to do about it if it does not work. */
export function stateOf({ enabled, disabledBecause, failingSince }: EndpointView) {
  if (!enabled) {
    const [tone, words, advice] = DISABLED[disabledBecause ?? ''] ?? ['quiet', 'disabled', ''];
    return { tone, words, advice } as const;
  }
  if (failingSince === null) return { tone: 'good', words: 'working', advice: undefined } as const;
  const words = `failing since ${formatMoment(failingSince)}`;
  const advice =
    'Its attempts fail and are repeated at longer and longer intervals. The deliveries below say why. An endpoint that fails for days is disabled.';
  return { tone: 'warn', words, advice } as const;
}

const SENT: Readonly<Record<string, readonly [tone: Tone, words: string]>> = {
  processing: ['info', 'being sent'],
  done: ['good', 'delivered'],
  dead: ['bad', 'failed'],
  discarded: ['quiet', 'discarded'],
};

/** The state of an event at an endpoint as a colour and a word. */
export function sentState({ status, attempts }: Pick<Sent, 'status' | 'attempts'>) {
  const [tone, words] = SENT[status] ?? (attempts > 0 ? ['warn', 'retrying'] : ['info', 'waiting']);
  return { tone, words } as const;
}

/** Whether the next attempt is still to come. */
export const isOpen = ({ status }: Pick<Sent, 'status'>) => status === 'pending' || status === 'processing';

/** The filters of deliveries by status. */
export const SENT_FILTERS = [
  ['', 'All'],
  ['pending', 'Waiting'],
  ['done', 'Delivered'],
  ['dead', 'Failed'],
] as const;

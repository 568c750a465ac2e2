import type { Tone } from '../parts/parts.tsx';
import { read } from './api.ts';

/** A delivery in the list. */
export interface DeliveryRow {
  readonly seq: number;
  readonly id: string;
  readonly source: string;
  readonly event: string | null;
  /** The event by the sender's name. */
  readonly senderEvent: string | null;
  readonly status: string;
  readonly receivedAt: string;
  readonly attempts: number;
  readonly size: number;
}

export interface DeliveryList {
  readonly items: readonly DeliveryRow[];
  readonly next: number | null;
}

const TONES: Readonly<Record<string, Tone>> = {
  done: 'good',
  dead: 'bad',
  pending: 'warn',
  processing: 'info',
  unhandled: 'quiet',
  discarded: 'quiet',
};

export const statusTone = (status: string): Tone => TONES[status] ?? 'quiet';

/** The filters of the list, by their names in the URL of the page and of the endpoint. */
const FILTERS = ['status', 'event', 'source', 'since', 'until', 'text'] as const;

/** The query of the endpoint for the filters of the page. */
export function listQuery(query: URLSearchParams, more: Readonly<Record<string, string>> = {}): string {
  const given = FILTERS.flatMap((name) => {
    const value = query.get(name);
    if (name === 'source' && value === '/webhook') return [[name, '']];
    return value === null || value === '' ? [] : [[name, value]];
  });
  return `deliveries?${new URLSearchParams([...given, ...Object.entries(more)])}`;
}

/** Collects all matches page by page; `onFound` gets their number so far. The signal ends it early. */
export async function collect(
  query: URLSearchParams,
  isWanted: (row: DeliveryRow) => boolean,
  onFound: (count: number) => void,
  signal: AbortSignal,
): Promise<readonly DeliveryRow[]> {
  const found: DeliveryRow[] = [];
  let before: number | null = null;
  do {
    const more: Record<string, string> = { limit: '1000' };
    if (before !== null) more.before = String(before);
    const page: DeliveryList = await read<DeliveryList>(listQuery(query, more), signal);
    found.push(...page.items.filter(isWanted));
    onFound(found.length);
    before = page.next;
  } while (before !== null && !signal.aborted);
  return found;
}

export type Action = 'replay' | 'discard';

/** Whether an action applies to deliveries of this status. */
export function isActionable(action: Action, { status }: Pick<DeliveryRow, 'status'>): boolean {
  const isOpen = status === 'pending' || status === 'processing';
  return action === 'replay' ? !isOpen : isOpen || status === 'dead';
}

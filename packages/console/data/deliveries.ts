import { createContext, useContext, useEffect } from 'react';
import type { Tone } from '../parts/parts.tsx';
import { read } from './api.ts';
import type { Data } from './use-data.ts';

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
  /** The error of one of its dead jobs; absent where details are hidden. */
  readonly error?: string | null;
}

export interface DeliveryList {
  readonly items: readonly DeliveryRow[];
  readonly next: number | null;
}

/** One job of a delivery. */
export interface Job {
  readonly target: string;
  readonly status: string;
  readonly attempts: number;
  /** Attempts whose process crashed. */
  readonly crashes: number;
  readonly nextAttemptAt: string | null;
  /** The earliest time to handle it, if it was received for later. */
  readonly plannedAt: string | null;
  readonly finishedAt: string | null;
  readonly error?: string | null;
  /** The finished attempts that the job keeps, the latest ones. */
  readonly history: readonly Attempt[];
}

export interface Attempt {
  readonly attempt: number;
  readonly outcome: string;
  readonly startedAt: string;
  readonly durationMs: number | null;
  /** The process that made the attempt; absent in the portal. */
  readonly process?: string;
  /** The status that a forward address answered. */
  readonly status: number | null;
  readonly error?: string | null;
  readonly answer?: string | null;
}

/** One delivery with all details. */
export interface DeliveryView extends DeliveryRow {
  readonly contentType: string | null;
  readonly dataPointer: string;
  readonly jobs: readonly Job[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly bodyBase64?: string;
  readonly bodyTruncated?: boolean;
}

/** The matches of a filter by status. */
export interface DeliveryCounts {
  readonly total: number;
  readonly counts: Readonly<Record<string, number>>;
  /** Where a count of very many goes on. */
  readonly next: number | null;
}

/** What fails now. */
export interface Failing {
  /** Dead deliveries. */
  readonly dead: number;
  readonly targets: readonly {
    readonly target: string;
    readonly dead: number;
    readonly retrying: number;
    readonly lastDeadAt: string | null;
    readonly error?: string | null;
  }[];
}

/** What fails now, read while any page is open. */
export const FailingContext = createContext<Data<Failing>>({
  value: undefined,
  error: undefined,
  stale: undefined,
  reload() {},
});

export const useFailing = () => useContext(FailingContext);

/** The server examines no more dead deliveries. */
const MOST = 10_000;

/** A number of dead deliveries or jobs. */
export const shownCount = (count: number) => (count >= MOST ? '10,000+' : count.toLocaleString('en'));

/** Statuses in the order of their urgency. */
export const STATUSES = ['dead', 'unhandled', 'pending', 'processing', 'done', 'discarded'] as const;

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
const FILTERS = ['status', 'event', 'source', 'target', 'since', 'until', 'text'] as const;

/** The query of the endpoint for the filters of the page. */
export function listQuery(
  query: URLSearchParams,
  more: Readonly<Record<string, string>> = {},
  path = 'deliveries',
): string {
  const given = FILTERS.flatMap((name) => {
    const value = query.get(name);
    if (name === 'source' && value === '/webhook') return [[name, '']];
    return value === null || value === '' ? [] : [[name, value]];
  });
  return `${path}?${new URLSearchParams([...given, ...Object.entries(more)])}`;
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

/** The numbers of some deliveries by status, in words: `2 dead, 5 done`. */
export function byStatus(rows: readonly Pick<DeliveryRow, 'status'>[]): string {
  return STATUSES.map((status) => [status, rows.filter((row) => row.status === status).length] as const)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count.toLocaleString('en')} ${status}`)
    .join(', ');
}

const isOpen = ({ status }: Pick<DeliveryRow, 'status'>) => status === 'pending' || status === 'processing';

/** Interval in which open deliveries are read anew, in milliseconds. */
const OPEN = 2_000;

/** Reads anew while one of the shown deliveries is open: the stream tells of the newest ones alone. */
export function useUntilSettled(rows: readonly Pick<DeliveryRow, 'status'>[], reload: () => void): void {
  const waits = rows.some(isOpen);
  useEffect(() => {
    if (!waits) return;
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, OPEN);
    return () => clearInterval(timer);
  }, [waits, reload]);
}

/** Whether an action does again, or undoes, what an operator may count on: it then asks first. */
export function asksFirst(action: Action, { status }: Pick<DeliveryRow, 'status'>): boolean {
  return action === 'replay' && (status === 'done' || status === 'discarded');
}

/** Whether an action applies to deliveries of this status. */
export function isActionable(action: Action, row: Pick<DeliveryRow, 'status'>): boolean {
  return action === 'replay' ? !isOpen(row) : isOpen(row) || row.status === 'dead';
}

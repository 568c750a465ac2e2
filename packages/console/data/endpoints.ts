import { createContext, useContext } from 'react';
import type { Tone } from '../parts/parts.tsx';
import { formatMoment } from './format.ts';
import type { Data } from './use-data.ts';

/** An endpoint of a tenant. */
export interface EndpointRow {
  readonly id: string;
  readonly tenant: string;
  readonly url: string;
  readonly description?: string;
  readonly types?: readonly string[];
  readonly channels?: readonly string[];
  readonly filter?: unknown;
  readonly rate?: string;
  /** The names of the headers alone. */
  readonly headers?: readonly string[];
  readonly order?: string;
  readonly transform?: string;
  readonly state: string;
  readonly disabledBecause: string | null;
  readonly disabledAt: string | null;
  readonly failingSince: string | null;
  readonly createdAt: string;
  /** Its latest events. */
  readonly recent: {
    readonly events: number;
    readonly done: number;
    readonly dead: number;
    readonly open: number;
    readonly lastSuccessAt: string | null;
    readonly lastFailureAt: string | null;
    /** Absent where details are hidden. */
    readonly error?: string | null;
  };
}

export interface EndpointCounts {
  readonly counts: Readonly<Record<string, number>>;
}

/** The numbers of endpoints by state, read while any page is open. */
export const EndpointsContext = createContext<Data<EndpointCounts>>({
  value: undefined,
  error: undefined,
  stale: undefined,
  reload() {},
});

export const useEndpoints = () => useContext(EndpointsContext);

const DISABLED: Readonly<Record<string, readonly [tone: Tone, words: string]>> = {
  manual: ['quiet', 'disabled by hand'],
  gone: ['bad', 'disabled: it answered 410'],
  failing: ['bad', 'disabled: it failed for days'],
};

/** The state of an endpoint as a colour and words, and since when. */
export function stateOf({ disabledBecause, disabledAt, failingSince }: EndpointRow) {
  const at = disabledAt ?? failingSince;
  const since = at === null ? undefined : formatMoment(at);
  const known = DISABLED[disabledBecause ?? ''];
  if (known !== undefined) return { tone: known[0], words: known[1], since } as const;
  if (failingSince === null) return { tone: 'good', words: 'working', since: undefined } as const;
  return { tone: 'warn', words: 'failing', since } as const;
}

import type { Fault } from '../../data/api.ts';
import type { EndpointView } from '../data.ts';

/** What the form of an endpoint says, as text. */
export interface Draft {
  readonly url: string;
  readonly description: string;
  readonly isAll: boolean;
  readonly types: ReadonlySet<string>;
  readonly patterns: string;
  readonly channels: string;
  readonly filter: string;
  readonly rate: string;
  readonly order: string;
  readonly headers: string;
  /** The name of a transformation; empty for none. */
  readonly transform: string;
  /** Of a new endpoint; empty for one that is made. */
  readonly secret: string;
}

interface FieldText {
  readonly label: string;
  readonly hint: string;
  readonly example?: string;
  readonly isLong?: boolean;
}

export type FieldName = keyof typeof FIELDS;

/** The fields that are texts. */
export const FIELDS = {
  url: {
    label: 'URL',
    hint: 'Events are sent to it by POST. Redirects are not followed.',
    example: 'https://example.com/webhooks',
  },
  description: { label: 'Description', hint: 'For you alone.' },
  channels: {
    label: 'Channels',
    hint: 'Separated by commas. It gets only events of one of them; empty for all events.',
    example: 'eu, us',
  },
  rate: { label: 'Rate', hint: 'The most requests in a second, a minute or an hour.', example: '10/s' },
  order: {
    label: 'Order',
    hint: 'A JSON pointer into the body: events with the same value there are sent one after the other.',
    example: '/data/customer',
  },
  filter: {
    label: 'Filter',
    hint: 'JSON: a condition on the data of events. Empty for none.',
    example: '{ "amount": { "gt": 100 } }',
    isLong: true,
  },
  headers: {
    label: 'Headers',
    hint: 'One a line, sent with each request.',
    example: 'x-environment: production',
    isLong: true,
  },
  transform: { label: 'Transformation', hint: 'Changes each request before it is sent.' },
  secret: {
    label: 'Signing secret',
    hint: 'Empty for a new one. Your own begins with whsec_, then base64.',
    example: 'whsec_…',
  },
} as const satisfies Readonly<Record<string, FieldText>> as Readonly<
  Record<
    'url' | 'description' | 'channels' | 'rate' | 'order' | 'filter' | 'headers' | 'transform' | 'secret',
    FieldText
  >
>;

/** The form of an endpoint, or of a new one. */
export function draftOf(endpoint: EndpointView | undefined): Draft {
  const { url = '', description = '', types, channels = [], filter } = endpoint ?? {};
  const { rate = '', order = '', transform = '' } = endpoint ?? {};
  const isPattern = (type: string) => type.endsWith('*');
  const named = types?.filter((type) => type !== '*') ?? [];
  return {
    url,
    description,
    isAll: types === undefined || types.includes('*'),
    types: new Set(named.filter((type) => !isPattern(type))),
    patterns: named.filter(isPattern).join(', '),
    channels: channels.join(', '),
    filter: filter === undefined ? '' : JSON.stringify(filter, null, 2),
    rate,
    order,
    headers: Object.entries(endpoint?.headers ?? {})
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
    transform,
    secret: '',
  };
}

type FaultsByField = Readonly<Record<string, readonly string[]>>;

const listOf = (text: string, separator: RegExp) =>
  text
    .split(separator)
    .map((each) => each.trim())
    .filter((each) => each !== '');

/** The body of a request, and the faults of texts that cannot be sent. In a change, null removes a member. */
export function bodyOf(
  draft: Draft,
  isChange: boolean,
): { readonly body: Readonly<Record<string, unknown>>; readonly faults: FaultsByField } {
  const faults: Record<string, readonly string[]> = {};
  const types = [...draft.types, ...listOf(draft.patterns, /[\s,]+/)];
  const channels = listOf(draft.channels, /[\n,]/);
  if (draft.url.trim() === '') faults.url = ['An endpoint needs a URL'];
  if (!draft.isAll && types.length === 0) faults.types = ['Choose at least one event type, or all events'];
  let filter: unknown = null;
  try {
    if (draft.filter.trim() !== '') filter = JSON.parse(draft.filter);
  } catch (error) {
    faults.filter = [`This is not JSON: ${(error as Error).message}`];
  }
  const headers: Record<string, string> = {};
  for (const line of listOf(draft.headers, /\n/)) {
    const [name = '', value] = line.split(/:(.*)/s);
    if (value === undefined) faults.headers = [`"${line}" has no colon; write name: value`];
    else headers[name.trim()] = value.trim();
  }
  const members = {
    url: draft.url.trim(),
    description: draft.description.trim() || null,
    types: draft.isAll ? null : [...new Set(types)],
    channels: channels.length === 0 ? null : channels,
    filter,
    rate: draft.rate.trim() || null,
    order: draft.order.trim() || null,
    headers: Object.keys(headers).length === 0 ? null : headers,
    transform: draft.transform || null,
    // A rotation changes that of an endpoint.
    ...(!isChange && { secret: draft.secret.trim() || null }),
  };
  const body = isChange
    ? members
    : Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
  return { body, faults };
}

/** The faults that the service found, by the field that each begins with, and those of no field. */
export function faultsOf(faults: readonly Fault[]): {
  readonly byField: FaultsByField;
  readonly others: readonly string[];
} {
  const byField: Record<string, readonly string[]> = {};
  const others: string[] = [];
  for (const { detail: fault } of faults) {
    const [name = ''] = /^[a-z]+/.exec(fault) ?? [];
    if (name === 'types' || Object.hasOwn(FIELDS, name)) byField[name] = [...(byField[name] ?? []), fault];
    else others.push(fault);
  }
  return { byField, others };
}

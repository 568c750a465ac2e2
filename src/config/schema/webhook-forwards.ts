import * as v from 'valibot';
import { countField, toggleField, wholeField } from './fields.ts';
import type { Written } from './read-object.ts';
import { secretsSchema } from './secret-reference.ts';
import { filterField } from './webhook-condition.ts';
import { rateField } from './webhook-rate.ts';
import { orderField, priorityField, runAtField } from './webhook-rules.ts';
import { transformField } from './webhook-transform.ts';

const URL_EXPECTED = 'must be an http or https URL without a user name in it';

const CHANGES = ['created', 'updated', 'deleted'] as const;

/** Which changes of users are forwarded: all by `true`. */
const changesField = v.pipe(
  wholeField(
    v.union([v.boolean(), v.array(v.picklist(CHANGES))]),
    `must be true, or an array of ${CHANGES.map((change) => `"${change}"`).join(', ')}`,
  ),
  v.transform((given): readonly (typeof CHANGES)[number][] => {
    if (typeof given === 'boolean') return given ? CHANGES : [];
    return given;
  }),
);

export const forwardSchema = v.object(
  {
    url: v.pipe(
      v.string(URL_EXPECTED),
      v.check(isHttpUrl, URL_EXPECTED),
      v.transform((text) => new URL(text)),
    ),
    /** Standard Webhooks secrets to sign with; default none: not signed. */
    secrets: v.optional(secretsSchema),
    /** The events to forward; default all, or none where it is told of changes of users. */
    events: v.optional(wholeField(v.array(v.string()), 'must be an array of event names')),
    /** The changes of users that it is told of; `true` for all, default none. */
    users: v.optional(changesField),
    /** The deliveries of these events that it gets; default all. */
    when: v.optional(filterField),
    /** What is sent in place of the received body; default that body. */
    transform: v.optional(transformField),
    /** How many attempts may begin in a time, in each process; default no limit. */
    rate: v.optional(rateField),
    order: v.optional(orderField),
    priority: v.optional(priorityField),
    runAt: v.optional(runAtField),
    /** Whether the address may be in a private network; default false. */
    allowPrivate: v.optional(toggleField, false),
    concurrency: v.optional(countField),
    /** Timeout of an attempt, in milliseconds. */
    timeout: v.optional(countField),
    /** Maximum attempts before a delivery is dead. */
    attempts: v.optional(countField),
  },
  'must be a URL, or an object with a url',
);

/** An address to forward deliveries to. */
export type ForwardConfig = Written<typeof forwardSchema>;

/** The addresses by name. */
export type ForwardsConfig = Readonly<Record<string, string | ForwardConfig>>;

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}

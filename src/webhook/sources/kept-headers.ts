import { isSecretHeader } from '../../core/secret-header.ts';
import type { SourceLayout } from './source.ts';

/** What known senders say in headers: event names, ids of deliveries and senders, times. Stripe says it all in the body. */
const KNOWN = [
  // GitHub
  'x-github-event',
  'x-github-delivery',
  'x-github-hook-id',
  'x-github-hook-installation-target-type',
  'x-github-hook-installation-target-id',
  // Standard Webhooks, and Svix
  'webhook-id',
  'webhook-timestamp',
  'svix-id',
  'svix-timestamp',
  // Shopify
  'x-shopify-topic',
  'x-shopify-shop-domain',
  'x-shopify-api-version',
  'x-shopify-webhook-id',
  'x-shopify-event-id',
  'x-shopify-triggered-at',
  'x-shopify-test',
  // GitLab
  'x-gitlab-event',
  'x-gitlab-event-uuid',
  'x-gitlab-webhook-uuid',
  'x-gitlab-instance',
  'idempotency-key',
  // Slack
  'x-slack-request-timestamp',
  'x-slack-retry-num',
  'x-slack-retry-reason',
] as const;

/** What decides about the headers of a source, beside its layout. */
export interface HeaderOptions {
  /** Those that the configuration lists; undefined: none are listed. */
  readonly headers?: readonly string[] | undefined;
  /** The header with the signature or the token, where it has a name of its own. */
  readonly header?: string;
  readonly timestampHeader?: string | undefined;
  readonly headerPrefix?: string;
}

/** The headers that deliveries of a source keep: the listed ones, or those that known senders and this source use. */
export function keptHeadersOf(options: HeaderOptions, { event, dedup }: SourceLayout): readonly string[] {
  const { headers, header, timestampHeader, headerPrefix } = options;
  if (headers !== undefined) return [...new Set(headers)];
  const own = [event, dedup].flatMap((place) => (place?.kind === 'header' ? place.name : []));
  if (timestampHeader !== undefined) own.push(timestampHeader);
  if (headerPrefix !== undefined) own.push(`${headerPrefix}-id`, `${headerPrefix}-timestamp`);
  return [...new Set([...own, ...KNOWN])].filter((name) => name !== header && !isSecretHeader(name));
}

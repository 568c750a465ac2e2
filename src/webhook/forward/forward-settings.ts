import type { InferOutput } from 'valibot';
import type { forwardSchema } from '../../config/schema/webhook-forwards.ts';

/** A forward address, validated. Times are in milliseconds. */
export interface ForwardSettings
  extends Readonly<Omit<InferOutput<typeof forwardSchema>, 'secrets' | 'events'>> {
  readonly name: string;
  /** The events to forward; undefined: all. */
  readonly events?: readonly string[] | undefined;
  /** Standard Webhooks secrets to sign with; none: not signed. */
  readonly secrets: readonly string[];
}

import type { InferOutput } from 'valibot';
import type { forwardSchema } from '../../config/schema/webhook-forwards.ts';

/** Where deliveries are sent on to, as configured. Times are in milliseconds. */
export interface ForwardSettings
  extends Readonly<Omit<InferOutput<typeof forwardSchema>, 'secrets' | 'events'>> {
  readonly name: string;
  /** The events that go there; undefined: all. */
  readonly events?: readonly string[] | undefined;
  /** Standard Webhooks secrets to sign with; none: not signed. */
  readonly secrets: readonly string[];
}

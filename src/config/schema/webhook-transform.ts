import * as v from 'valibot';
import { isRecord } from '../../core/record.ts';
import type { DeliveryTransform } from '../../inbox/rules/transform.ts';

/** What is sent in place of the received body, as data. */
export interface TransformData {
  /**
   * JSON pointer (RFC 6901) to the part of the body that is sent, or an object of pointers: an object with what they
   * point to is sent, without members whose pointer points to nothing.
   */
  readonly body?: string | Readonly<Record<string, string>>;
  /**
   * Headers by name. `{id}`, `{event}`, `{senderEvent}`, `{source}` and `{/pointer}` stand for what the delivery has there. A header is
   * left out when one of them has no value.
   */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The transformation of a forward address; `checkTransform` says what is wrong inside it. */
export const transformField = v.custom<DeliveryTransform | TransformData>(
  (value) => typeof value === 'function' || isRecord(value),
  'must be a function, or an object like { body: "/data", headers: { "x-event": "{event}" } }',
);

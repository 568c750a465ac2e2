import type { SchemeName } from '../../config/schema/webhook-sources.ts';
import { type JsonPointer, valueAt } from '../../core/json-pointer.ts';
import type { RequestHeaders, Scheme } from '../schemes/scheme.ts';

/** The place of a value in a request. */
export type Place =
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'pointer'; readonly pointer: JsonPointer };

/** Where a source's requests hold their event, data and key. */
export interface SourceLayout {
  readonly event: Place;
  /** Our names of events by those of the sender; every other keeps its name. */
  readonly events: ReadonlyMap<string, string>;
  readonly data: JsonPointer;
  /** The place of the deduplication key, equal in all attempts to deliver one event; undefined: none. */
  readonly dedup: Place | undefined;
}

/** A configured sender of webhooks, validated. */
export interface SourceSettings extends SourceLayout {
  readonly name: string;
  readonly scheme: SchemeName;
  /** The scheme with its parameters. */
  readonly signature: Scheme;
  /** At least one. */
  readonly secrets: readonly string[];
  /** The headers that its deliveries keep, in lower case. */
  readonly headers: readonly string[];
  /** Maximum body size, in bytes; undefined: the largest of the scheme's usual sender and that of the door. */
  readonly maxBodyBytes: number | undefined;
}

/** The value at a place; undefined when there is none. */
export function valueAtPlace(place: Place, headers: RequestHeaders, body: unknown): unknown {
  return place.kind === 'header' ? headers[place.name] : valueAt(body, place.pointer);
}

import { type JsonPointer, valueAt } from '../../core/json-pointer.ts';
import type { RequestHeaders, Signer, Verifier } from '../schemes/scheme.ts';
import { type ChosenScheme, createSigner, createVerifier } from '../schemes/schemes.ts';

/** Where a text of a request stands. */
export type Place =
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'pointer'; readonly pointer: JsonPointer };

/** How the requests of a source are read. */
export interface SourceLayout {
  readonly event: Place;
  /** Our names of events by those of the sender; every other keeps its name. */
  readonly events: ReadonlyMap<string, string>;
  readonly data: JsonPointer;
  /** What is the same in every attempt to deliver the same event; undefined when nothing is. */
  readonly dedup: Place | undefined;
}

/** A sender of webhooks, configured: complete and free of faults. */
export interface SourceSettings extends SourceLayout {
  readonly name: string;
  readonly chosen: ChosenScheme;
  /** At least one. */
  readonly secrets: readonly string[];
}

/** A source whose keys are prepared. */
export interface Source extends SourceLayout {
  readonly name: string;
  readonly scheme: ChosenScheme['scheme'];
  readonly verifier: Verifier;
}

/** Throws UnusableSecretError. */
export function createSource(settings: SourceSettings): Source {
  const { chosen, secrets, ...rest } = settings;
  return { ...rest, scheme: chosen.scheme, verifier: createVerifier(chosen, secrets) };
}

/** Signs like the sender of a source. Throws UnusableSecretError when its secrets can only verify. */
export function signerOf({ chosen, secrets }: SourceSettings): Signer {
  return createSigner(chosen, secrets);
}

/** The value that stands at a place; undefined when nothing stands there. */
export function valueAtPlace(place: Place, headers: RequestHeaders, body: unknown): unknown {
  return place.kind === 'header' ? headers[place.name] : valueAt(body, place.pointer);
}

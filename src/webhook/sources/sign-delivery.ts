import type { Outgoing, Signer } from '../schemes/scheme.ts';
import type { Place, SourceLayout } from './source.ts';

/** A delivery to send as the sender of a source would. */
export interface UnsignedDelivery extends Pick<Outgoing, 'id' | 'timestamp' | 'body'> {
  /** By the sender's name for it. Where the body names the event, it must do so already. */
  readonly event: string;
  /** Further headers, for schemes that sign some; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** All headers of a delivery: those that the source reads, and the signature. Throws UnsignableError. */
export function signDelivery(
  { event, dedup }: SourceLayout,
  sign: Signer,
  delivery: UnsignedDelivery,
): Readonly<Record<string, string>> {
  const headers = {
    'content-type': 'application/json',
    ...delivery.headers,
    ...inHeader(event, delivery.event),
    ...inHeader(dedup, delivery.id),
  };
  return { ...headers, ...sign({ ...delivery, headers }) };
}

function inHeader(place: Place | undefined, value: string): Readonly<Record<string, string>> {
  return place?.kind === 'header' ? { [place.name]: value } : {};
}

import type { JsonPointer } from '../core/json.ts';
import { UnsignableError } from './hmac.ts';
import type { Sample } from './samples.ts';
import type { Signer } from './schemes.ts';
import { type Place, type SourceLayout, valueAtPlace } from './sources.ts';

/** The content of a body. */
interface BodyParts {
  /** The sender's name of the event. */
  readonly event: string;
  readonly data: unknown;
  readonly id: string;
  /** The body around the data, as the sender sends it; undefined for none. */
  readonly sample?: Sample | undefined;
}

/**
 * Builds a body in the layout of a source: the data at their location, and event and id if the layout has
 * them in the body. Throws UnsignableError if the data cannot contain those.
 */
export function buildBody(
  layout: Omit<SourceLayout, 'events'>,
  { event, data, id, sample }: BodyParts,
): Uint8Array {
  let body = placed(sample?.body ?? {}, layout.data, data);
  body = inBody(body, layout.event, event);
  body = inBody(body, layout.dedup, id);
  if (layout.sentAt !== undefined) body = placed(body, layout.sentAt, Date.now());
  return Buffer.from(layout.isForm === true ? formOf(body) : JSON.stringify(body));
}

function inBody(body: unknown, place: Place | undefined, text: string): unknown {
  if (place?.kind === 'pointer') return placed(body, place.pointer, text);
  if (place?.kind !== 'fields' || valueAtPlace(place, {}, body) === text) return body;
  const found = place.fields.find(([, prefix]) => prefix === '' || text.startsWith(`${prefix}.`));
  if (found === undefined) return body;
  const [name, prefix] = found;
  return placed(body, [name], prefix === '' ? text : text.slice(prefix.length + 1));
}

/** The fields of an object as a form. Throws UnsignableError for fields that a form cannot hold. */
function formOf(body: unknown): string {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(Object(body))) {
    if (typeof value === 'object')
      throw new UnsignableError(`a form cannot hold the field ${JSON.stringify(name)}`);
    form.append(name, String(value));
  }
  return form.toString();
}

/** The document with a value set at a pointer; missing objects on the path are created. */
function placed(document: unknown, pointer: JsonPointer, value: unknown): unknown {
  const [token, ...rest] = pointer;
  if (token === undefined) return value;
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw new UnsignableError(
      `the data must be an object, because the sender puts ${JSON.stringify(token)} into it`,
    );
  }
  const members = new Map(Object.entries(document));
  members.set(token, placed(members.get(token) ?? {}, rest, value));
  return Object.fromEntries(members);
}

/** A delivery to send in the form that a source's sender uses. */
interface UnsignedDelivery extends Pick<Parameters<Signer>[0], 'id' | 'timestamp' | 'body'> {
  /** The sender's name of the event; already in the body if the layout has it there. */
  readonly event: string;
  /** Additional headers, for schemes that sign some; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** All headers of a delivery: those that the source reads, and the signature. Throws UnsignableError. */
export function signDelivery(
  { event, dedup, isForm }: SourceLayout,
  sign: Signer,
  delivery: UnsignedDelivery,
): Readonly<Record<string, string>> {
  const headers = {
    'content-type': isForm === true ? 'application/x-www-form-urlencoded' : 'application/json',
    ...delivery.headers,
    ...inHeader(event, delivery.event),
    ...inHeader(dedup, delivery.id),
  };
  return { ...headers, ...sign({ ...delivery, headers }) };
}

function inHeader(place: Place | undefined, value: string): Readonly<Record<string, string>> {
  return place?.kind === 'header' ? { [place.name]: value } : {};
}

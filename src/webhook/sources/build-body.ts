import type { JsonPointer } from '../../core/json-pointer.ts';
import { UnsignableError } from '../schemes/scheme-error.ts';
import type { Place, SourceLayout } from './source.ts';

/** The content of a body. */
export interface BodyParts {
  /** By the sender's own name. */
  readonly event: string;
  readonly data: unknown;
  readonly id: string;
}

/**
 * A body in the layout of a source: the data at their place, and the event and the id where the body carries them.
 * Throws UnsignableError when the data leave no room for those.
 */
export function buildBody(layout: Omit<SourceLayout, 'events'>, { event, data, id }: BodyParts): Uint8Array {
  let body = placed({}, layout.data, data);
  body = inBody(body, layout.event, event);
  body = inBody(body, layout.dedup, id);
  return Buffer.from(JSON.stringify(body));
}

function inBody(body: unknown, place: Place | undefined, text: string): unknown {
  return place?.kind === 'pointer' ? placed(body, place.pointer, text) : body;
}

/** The document with a value at a pointer; missing objects on the way are created. */
function placed(document: unknown, pointer: JsonPointer, value: unknown): unknown {
  const [token, ...rest] = pointer;
  if (token === undefined) return value;
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw new UnsignableError(
      `the data have to be an object here, because the sender puts ${JSON.stringify(token)} into them`,
    );
  }
  const members = new Map(Object.entries(document));
  members.set(token, placed(members.get(token) ?? {}, rest, value));
  return Object.fromEntries(members);
}

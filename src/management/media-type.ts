import { preferred } from '../http/accept.ts';

/** The media types of this door's JSON, the preferred one first. */
export const MEDIA_TYPES = [
  'application/vnd.spring-boot.actuator.v3+json',
  'application/vnd.spring-boot.actuator.v2+json',
  'application/json',
] as const;

/** One of them. */
export type MediaType = (typeof MEDIA_TYPES)[number];

/** The one that an Accept header wants most; a header that accepts none of them gets the first. */
export function mediaTypeFor(accept: string | undefined): MediaType {
  return preferred(accept, MEDIA_TYPES) ?? MEDIA_TYPES[0];
}

import type { IncomingHttpHeaders } from 'node:http';

/** Whether an address is that of a trusted proxy; `hop` is its distance, 0 for who has connected. */
export type TrustedHop = (address: string, hop: number) => boolean;

/** The client's address: of those that proxies forward the first that comes from no trusted one, from the nearest on. */
export function clientAddress(
  remoteAddress: string,
  { 'x-forwarded-for': forwarded }: Readonly<IncomingHttpHeaders>,
  isTrusted: TrustedHop,
): string {
  if (forwarded === undefined) return remoteAddress;
  const addresses = String(forwarded)
    .split(',')
    .map((address) => address.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter((address) => address !== '')
    .reverse();
  let client = remoteAddress;
  for (const [hop, next] of addresses.entries()) {
    if (!isTrusted(client, hop)) break;
    client = next;
  }
  return client;
}

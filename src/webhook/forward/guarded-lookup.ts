import { type LookupAddress, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { AttemptError } from '../../inbox/dispatch/target.ts';
import { isPrivateAddress } from './private-address.ts';

/** A forward address is in a private network and `allowPrivate` is not set: a protection against SSRF. */
export class PrivateAddressError extends AttemptError {
  constructor(host: string) {
    super(
      `${host} is a private address; set allowPrivate for this forward address if that is intended`,
      'never',
    );
  }
}

/** Refuses a host that is a private IP address; names are checked when they are resolved. Throws PrivateAddressError. */
export function refusePrivateHost(hostname: string): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && isPrivateAddress(host)) throw new PrivateAddressError(host);
}

/**
 * Resolves a name with the system's resolver and fails when any of its addresses is private. The connection uses the
 * checked addresses, so DNS rebinding is not possible.
 */
export const guardedLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    if (error) return callback(error, '');
    const [first] = addresses;
    if (first === undefined || addresses.some(({ address }) => isPrivateAddress(address))) {
      return callback(new PrivateAddressError(hostname), '');
    }
    if (options.all) return callback(null, addresses);
    callback(null, first.address, first.family);
  });
};

import { type LookupAddress, lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { AttemptError } from '../../inbox/target.ts';
import { privateAddresses } from './private-address.ts';

/** A forward address resolves to a private network. */
export class PrivateAddressError extends AttemptError {
  constructor(host: string) {
    super(
      `${host} is a private address; set allowPrivate for this forward address if that is meant`,
      'never',
    );
  }
}

const isPrivate = privateAddresses();

/** Refuses a host that is a private IP address; `guardedLookup` checks names. */
export function refusePrivateHost(hostname: string): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && isPrivate(host)) throw new PrivateAddressError(host);
}

/**
 * Resolves names like the system does, and fails when any of their addresses is private. The connection uses the
 * checked addresses, so a name cannot resolve to others in between (DNS rebinding).
 */
export const guardedLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    if (error) return callback(error, '');
    const [first] = addresses;
    if (first === undefined || addresses.some(({ address }) => isPrivate(address))) {
      return callback(new PrivateAddressError(hostname), '');
    }
    if (options.all) return callback(null, addresses);
    callback(null, first.address, first.family);
  });
};

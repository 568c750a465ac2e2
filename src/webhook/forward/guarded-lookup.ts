import { isIP, type LookupFunction } from 'node:net';
import { AttemptError } from '../../inbox/dispatch/target.ts';
import type { HostResolver } from './host-resolver.ts';
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

/** Whether a host is a private IP address itself; names are judged when they are resolved. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) !== 0 && isPrivateAddress(host);
}

/**
 * A look-up for connections that fails when any address of a host is private, unless that is allowed. The connection uses
 * the checked addresses, so DNS rebinding is not possible.
 */
export function guardedLookup(resolver: HostResolver, allowPrivate: boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolver.resolve(hostname).then(
      (found) => {
        if (!allowPrivate && found.some(({ address }) => isPrivateAddress(address))) {
          return callback(new PrivateAddressError(hostname), '');
        }
        const wanted = found.filter(({ family }) => !options.family || options.family === family);
        const [first] = wanted;
        if (first === undefined) callback(new AttemptError(`${hostname} has no address of this family`), '');
        else if (options.all) callback(null, wanted);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, ''),
    );
  };
}

import { ExpectedError } from '../../core/expected-error.ts';
import { socketPathOf } from '../../core/unix-address.ts';

/** Which door listens where. */
export interface ListenerAddress {
  /** The door's name, for logs and messages. */
  readonly door: string;
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number | string;
  /** How the user changes the port, for the message when it is taken. */
  readonly portHint: string;
}

/** A door cannot listen; the start ends with this message. */
export class ListenError extends ExpectedError {
  override readonly name = 'ListenError';
  readonly code = 'CANNOT_LISTEN';

  constructor({ door, host, port, portHint }: ListenerAddress, cause: unknown) {
    const { code } = Object(cause) as { readonly code?: unknown };
    const path = socketPathOf(port);
    const why = (path === undefined ? reason : socketReason)(code, portHint);
    super(`The ${door} door cannot listen on ${path ?? `${host}:${port}`}: ${why}`, { cause });
  }
}

function reason(code: unknown, portHint: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `the port is in use. Stop the other program, or choose another port with ${portHint}.`;
    case 'EACCES':
      return `this user may not open the port. Choose one above 1023 with ${portHint}.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'this machine has no such address. Set --host or HOST to one that it has.';
    default:
      return `${String(code ?? 'unknown error')}.`;
  }
}

function socketReason(code: unknown, portHint: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `another program listens there. Stop it, or choose another path with ${portHint}.`;
    case 'ENOTSOCK':
      return `a file that is no socket is there. Remove it, or choose another path with ${portHint}.`;
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOENT':
    case 'ENOTDIR':
      // Node says EACCES for a folder that is not there.
      return 'its folder does not exist, or this user may not create a file in it.';
    default:
      return `${String(code ?? 'unknown error')}.`;
  }
}

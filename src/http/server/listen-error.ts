import { ExpectedError } from '../../core/expected-error.ts';

/** Which door listens where. */
export interface ListenerAddress {
  /** The door's name, for logs and messages. */
  readonly door: string;
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** How the user changes the port, for the message when it is taken. */
  readonly portHint: string;
}

/** A door cannot listen; the start ends with this message. */
export class ListenError extends ExpectedError {
  override readonly name = 'ListenError';
  readonly code = 'CANNOT_LISTEN';

  constructor({ door, host, port, portHint }: ListenerAddress, cause: unknown) {
    const { code } = Object(cause) as { readonly code?: unknown };
    super(`The ${door} door cannot listen on ${host}:${port}: ${reason(code, portHint)}`, { cause });
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

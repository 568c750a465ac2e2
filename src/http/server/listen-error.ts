import { ExpectedError } from '../../core/expected-error.ts';

/** A door cannot listen; the start ends with this message. */
export class ListenError extends ExpectedError {
  override readonly name = 'ListenError';
  readonly code = 'CANNOT_LISTEN';

  constructor(
    door: string,
    host: string,
    port: number,
    portHint: string,
    options: { readonly cause: unknown },
  ) {
    const { code } = Object(options.cause) as { readonly code?: unknown };
    super(`The ${door} door cannot listen on ${host}:${port}: ${reason(code, portHint)}`, options);
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

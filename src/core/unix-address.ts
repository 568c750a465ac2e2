/** Where a Unix socket is: `unix:` and an absolute path. */
export type UnixAddress = `unix:${string}`;

const PREFIX = 'unix:';
/** The longest path that every system takes for a socket, in bytes. */
const MAX_PATH_BYTES = 103;

/** What a setting that takes a Unix socket says of it. */
export const UNIX_ADDRESS = `${PREFIX}/path (of a socket, at most ${MAX_PATH_BYTES} bytes)`;

/** The path of `unix:/run/portico/rest.sock`; undefined for what is no such address, a port for instance. */
export function socketPathOf(address: unknown): string | undefined {
  if (typeof address !== 'string' || !address.startsWith(`${PREFIX}/`)) return undefined;
  const path = address.slice(PREFIX.length);
  return /\p{Cc}/u.test(path) || path.endsWith('/') || Buffer.byteLength(path) > MAX_PATH_BYTES
    ? undefined
    : path;
}

import type { IncomingHttpHeaders } from 'node:http';

/** A request that was refused for who sent it, or how often. */
export interface RefusedRequest {
  readonly id: string;
  /** The client's address; empty on a Unix socket. */
  readonly client: string;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<IncomingHttpHeaders>;
  readonly status: number;
  /** The name of the token or user whose credentials are good; undefined for nobody. */
  readonly caller: string | undefined;
  /** The code of the refusal. */
  readonly code: string;
}

/** Called for each of them, just before its reply is sent. */
export type OnRefused = (refused: RefusedRequest) => void;

/** Whether a reply says that its client may not, or not now. */
export function isAudited(status: number): boolean {
  return status === 401 || status === 403 || status === 429;
}

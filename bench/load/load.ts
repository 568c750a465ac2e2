import { runCannon } from './cannon.ts';
import { runWrk } from './wrk.ts';

/** `wrk` sends twice as many requests as autocannon can, so it sees differences that the latter does not. */
export type LoadTool = 'wrk' | 'autocannon';

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Load {
  readonly origin: string;
  /** Sent one after the other, again and again. */
  readonly requests: readonly HttpRequest[];
  readonly connections: number;
  readonly seconds: number;
  /** For files of the tool. */
  readonly folder: string;
  readonly cores: string | undefined;
}

/** Latencies are in milliseconds. */
export interface LoadResult {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly requests: number;
  /** Replies that are no success, and connections that broke. */
  readonly failed: number;
}

export function runLoad(tool: LoadTool, load: Load): Promise<LoadResult> {
  return tool === 'wrk' ? runWrk(load) : runCannon(load);
}

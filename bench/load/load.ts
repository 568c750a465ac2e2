import { runCannon } from './cannon.ts';
import { runWrk } from './wrk.ts';

/** wrk sends twice as many requests as autocannon can, so it shows differences that autocannon hides. */
export type LoadTool = 'wrk' | 'autocannon';

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Load {
  readonly origin: string;
  /** Sent one at a time, repeatedly. */
  readonly requests: readonly HttpRequest[];
  readonly connections: number;
  readonly seconds: number;
  /** Pause of a connection before each request, in milliseconds. Default: none. Only wrk supports it. */
  readonly pause?: number;
  /** Folder for the tool's files. */
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
  /** Number of unsuccessful replies and broken connections. */
  readonly failed: number;
}

export function runLoad(tool: LoadTool, load: Load): Promise<LoadResult> {
  return tool === 'wrk' ? runWrk(load) : runCannon(load);
}

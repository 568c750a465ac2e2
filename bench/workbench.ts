import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Load, type LoadResult, type LoadTool, runLoad } from './load/load.ts';
import type { Cores } from './machine/cores.ts';
import { type Server, type ServerOptions, startServer } from './servers/server.ts';

/** Length and number of the rounds; times are whole seconds. */
export interface Pace {
  readonly quick: boolean;
  readonly seconds: number;
  readonly rounds: number;
  readonly warmUp: number;
}

export const FULL: Pace = { quick: false, seconds: 5, rounds: 5, warmUp: 3 };
export const QUICK: Pace = { quick: true, seconds: 1, rounds: 2, warmUp: 1 };

export interface WorkbenchOptions {
  readonly pace: Pace;
  readonly cores: Cores;
  readonly tool: LoadTool;
  /** Path of the Node that runs the servers. */
  readonly node: string;
  readonly say: (text: string) => void;
}

export type StartOptions = Pick<ServerOptions, 'command' | 'env'> & {
  /** The working folder. Default: an empty one. */
  readonly folder?: string;
  readonly onAllCores?: boolean;
};

/** The tools of a row. Disposing of it stops all servers that it started and removes all of its files. */
export class Workbench implements AsyncDisposable {
  readonly pace: Pace;
  readonly cores: Cores;
  readonly node: string;
  readonly say: (text: string) => void;
  readonly loadTool: LoadTool;
  readonly #root = mkdtempSync(join(tmpdir(), 'portico-bench-'));
  readonly #stack = new AsyncDisposableStack();
  readonly #removeFiles = () =>
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });

  constructor({ pace, cores, tool, node, say }: WorkbenchOptions) {
    this.pace = pace;
    this.cores = cores;
    this.node = node;
    this.say = say;
    this.loadTool = tool;
    process.once('exit', this.#removeFiles);
    this.#stack.defer(() => {
      process.off('exit', this.#removeFiles);
      this.#removeFiles();
    });
  }

  /** Creates an empty folder. */
  folder(): string {
    return mkdtempSync(join(this.#root, 'f-'));
  }

  /** Starts a server, bound to the core of the servers unless `onAllCores` is set. */
  async start({ onAllCores = false, ...options }: StartOptions): Promise<Server> {
    const cores = onAllCores ? this.cores.all : this.cores.server;
    return this.use(await startServer({ cores, folder: this.folder(), ...options }));
  }

  load(load: Omit<Load, 'folder' | 'cores'>): Promise<LoadResult> {
    return runLoad(this.loadTool, { ...load, folder: this.#root, cores: this.cores.load });
  }

  /** Disposes of a resource together with this workbench. */
  use<T extends AsyncDisposable | Disposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

import { join } from 'node:path';
import { type PorticoProcess, startPortico } from '../../test/support/portico-process.ts';

export interface InstallationOptions {
  /** The working folder of all processes. */
  readonly folder: string;
  readonly databaseUrl: string;
  readonly processes: number;
}

/** A process with a unique name; a restarted process gets a new name. */
export interface Running {
  readonly name: string;
  readonly portico: PorticoProcess;
}

const HANDLERS = join(import.meta.dirname, '../../test/proof/kill/handlers.ts');
/** Delay before a process is restarted, in milliseconds, as with a process manager. */
const RESTART_DELAY = 200;

/** The processes of a service. Each is restarted when it ends, as by a process manager. */
export class Installation implements AsyncDisposable {
  readonly #options: InstallationOptions;
  readonly #running: (Running | undefined)[] = [];
  /** Unexpected ends of processes. */
  readonly ends: string[] = [];
  #runs = 0;
  #turn = 0;
  #isStopping = false;

  private constructor(options: InstallationOptions) {
    this.#options = options;
  }

  static async start(options: InstallationOptions): Promise<Installation> {
    const installation = new Installation(options);
    try {
      // One after another, because the first one migrates the schema.
      for (let place = 0; place < options.processes; place++) await installation.#begin(place);
    } catch (error) {
      await installation[Symbol.asyncDispose]();
      throw error;
    }
    return installation;
  }

  get running(): readonly Running[] {
    return this.#running.filter((running) => running !== undefined);
  }

  at(place: number): Running | undefined {
    return this.#running[place];
  }

  /** Returns the processes in turn. */
  next(): PorticoProcess | undefined {
    const { running } = this;
    return running[this.#turn++ % running.length]?.portico;
  }

  /** Ends a process with a signal and starts another in its place; resolves once that is ready. */
  async replace(place: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const old = this.#running[place];
    this.#running[place] = undefined;
    old?.portico.child.kill(signal);
    const end = await old?.portico.exited();
    if (signal === 'SIGTERM' && end !== 0) this.ends.push(`${old?.name} was stopped and ended with ${end}`);
    await this.#begin(place);
  }

  /** Stops all with SIGTERM; resolves to those that did not end with exit code 0. */
  async stop(): Promise<readonly string[]> {
    this.#isStopping = true;
    const ends = this.running.map(async ({ name, portico }) => {
      portico.child.kill('SIGTERM');
      const end = await portico.exited();
      return end === 0 ? [] : [`${name} was stopped and ended with ${end}: ${portico.stderr.slice(-500)}`];
    });
    return (await Promise.all(ends)).flat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.running.map(({ portico }) => portico[Symbol.asyncDispose]()));
  }

  async #begin(place: number): Promise<void> {
    const { folder, databaseUrl } = this.#options;
    const number = ++this.#runs;
    const portico = startPortico({
      cwd: folder,
      env: {
        DATABASE_URL: databaseUrl,
        GRAPHQL_USERS: 'database',
        MANAGEMENT_INCLUDE: '*',
        CONFIG: HANDLERS,
        RUN: String(number),
      },
    });
    await portico.ready();
    const running = { name: `process ${number}`, portico };
    this.#running[place] = running;
    void this.#watch(place, running);
  }

  /** Restarts a process that has ended unexpectedly. */
  async #watch(place: number, running: Running): Promise<void> {
    const end = await running.portico.exited();
    if (this.#running[place] !== running || this.#isStopping) return;
    this.#running[place] = undefined;
    this.ends.push(`${running.name} ended with ${end}: ${running.portico.stderr.trim().split('\n').at(-1)}`);
    while (!this.#isStopping) {
      await new Promise((resolve) => setTimeout(resolve, RESTART_DELAY));
      const isUp = await this.#begin(place).then(
        () => true,
        () => false,
      );
      if (isUp) return;
    }
  }
}

import { join } from 'node:path';
import { type PorticoProcess, startPortico } from '../../support/portico-process.ts';
import { type Subscriber, subscribeToUsers } from './subscriber.ts';

export interface GroupOptions {
  /** The working folder of all of them: what their handlers did stands in its effects.log. */
  readonly folder: string;
  /** Of all of them, or of the one at a place. */
  readonly databaseUrl: string | ((place: number) => string);
  readonly count: number;
}

/** A process of the group, and who is told at it of new users. */
export interface Member {
  readonly portico: PorticoProcess;
  readonly subscriber: Subscriber;
}

/** Several processes on one database, each with a subscriber of `userCreated`. */
export class Group implements AsyncDisposable {
  readonly #options: GroupOptions;
  readonly #members: (Member | undefined)[];
  /** Of all processes that there were. */
  readonly subscribers: Subscriber[] = [];
  #runs = 0;
  #turn = 0;

  private constructor(options: GroupOptions) {
    this.#options = options;
    this.#members = Array.from({ length: options.count });
  }

  static async start(options: GroupOptions): Promise<Group> {
    const group = new Group(options);
    try {
      // None is still starting when the others are ended.
      const begun = await Promise.allSettled(group.#members.map((_, place) => group.begin(place)));
      for (const each of begun) if (each.status === 'rejected') throw each.reason;
    } catch (error) {
      await group[Symbol.asyncDispose]();
      throw error;
    }
    return group;
  }

  get running(): readonly Member[] {
    return this.#members.filter((member) => member !== undefined);
  }

  /** The places where a process runs. */
  get places(): readonly number[] {
    return this.#members.flatMap((member, place) => (member === undefined ? [] : [place]));
  }

  /** One after the other. */
  next(): PorticoProcess | undefined {
    const { running } = this;
    return running[this.#turn++ % running.length]?.portico;
  }

  /** Starts a process at a place where none runs. */
  async begin(place: number): Promise<void> {
    const { folder, databaseUrl } = this.#options;
    const portico = startPortico({
      cwd: folder,
      env: {
        DATABASE_URL: typeof databaseUrl === 'string' ? databaseUrl : databaseUrl(place),
        INTERFACES: 'rest,webhook,graphql,management',
        GRAPHQL_USERS: 'database',
        CONFIG: join(import.meta.dirname, '../kill/handlers.ts'),
        RUN: String(++this.#runs),
      },
    });
    try {
      await portico.ready();
      const subscriber = await subscribeToUsers(`${portico.urls.graphql}/graphql`);
      this.subscribers.push(subscriber);
      this.#members[place] = { portico, subscriber };
    } catch (error) {
      await portico[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Ends a process as a crash does. */
  async kill(place: number): Promise<void> {
    const member = this.#members[place];
    this.#members[place] = undefined;
    member?.subscriber.cut();
    await member?.portico[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((_, place) => this.kill(place)));
  }
}

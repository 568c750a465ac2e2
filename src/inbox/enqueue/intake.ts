import type { NewDelivery, NewJob } from '../delivery.ts';
import { parseDeliveryBody } from '../delivery-body.ts';
import { PeriodicTask } from '../dispatch/periodic-task.ts';
import type { Appended, Inbox } from '../inbox.ts';
import type { DeliveryFacts } from '../rules/received-delivery.ts';
import type { Enqueued, TakenDelivery } from './enqueued.ts';

export interface IntakeOptions {
  readonly inbox: Pick<Inbox, 'enqueued'>;
  /** Decides which jobs a delivery gets. */
  plan(delivery: DeliveryFacts, body: unknown): readonly NewJob[];
  /** Called with each delivery that this process has taken in. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  onError(error: unknown): void;
}

/** Interval of the polls in milliseconds, with notifications of the engine and without. */
const POLL = { notified: 1_000, alone: 100 } as const;

/** Makes deliveries of what programs have enqueued in transactions of their own, in the order of their numbers. */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #polls: PeriodicTask;
  #subscription: Disposable | undefined;

  constructor(options: IntakeOptions) {
    this.#options = options;
    const { onEnqueued } = options.inbox.enqueued;
    const interval = onEnqueued === undefined ? POLL.alone : POLL.notified;
    this.#polls = new PeriodicTask(interval, () => this.#takeAll().catch(options.onError));
  }

  start(): void {
    this.#subscription = this.#options.inbox.enqueued.onEnqueued?.(() => this.#polls.request());
    this.#polls.start();
  }

  /** Resolves once nothing is being taken in. */
  async stop(): Promise<void> {
    this.#subscription?.[Symbol.dispose]();
    await this.#polls.stop();
  }

  async #takeAll(): Promise<void> {
    const { inbox, onAppended } = this.#options;
    while (!this.#polls.stopped) {
      const found = await inbox.enqueued.oldest();
      if (found.length === 0) return;
      const taken = found.map((each) => this.#deliveryOf(each));
      const results = await inbox.enqueued.take(taken);
      for (const [i, appended] of results.entries()) {
        const delivery = taken[i]?.delivery;
        if (delivery !== undefined && appended !== undefined) onAppended(delivery, appended);
      }
    }
  }

  #deliveryOf({ seq, ...enqueued }: Enqueued): TakenDelivery {
    const stored = { ...enqueued, dataPointer: '/data', contentType: 'application/json' };
    return { seq, delivery: { ...stored, jobs: this.#options.plan(stored, parsed(stored)) } };
  }
}

function parsed(delivery: Parameters<typeof parseDeliveryBody>[0]): unknown {
  try {
    return parseDeliveryBody(delivery);
  } catch {
    // Its attempts fail with the reason.
    return undefined;
  }
}

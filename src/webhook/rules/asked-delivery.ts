import {
  type DeliveryFacts,
  type ReceivedDelivery,
  receivedDelivery,
} from '../../inbox/rules/received-delivery.ts';

/** A delivery that the rules of targets are asked about; what functions get is made once, for the first that asks. */
export class AskedDelivery {
  /** The parsed body. */
  readonly body: unknown;
  readonly #facts: DeliveryFacts;
  #received: ReceivedDelivery | undefined;

  constructor(facts: DeliveryFacts, body: unknown) {
    this.#facts = facts;
    this.body = body;
  }

  /** The delivery for rules that get its event by this name. */
  calledBy(event: string | null): AskedDelivery {
    return event === this.#facts.event ? this : new AskedDelivery({ ...this.#facts, event }, this.body);
  }

  get received(): ReceivedDelivery {
    this.#received ??= receivedDelivery(this.#facts, this.body);
    return this.#received;
  }
}

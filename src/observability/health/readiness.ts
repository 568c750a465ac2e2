/** Whether this process accepts new requests: from when all doors listen until the stop begins. */
export class Readiness {
  #accepting = false;

  get accepting(): boolean {
    return this.#accepting;
  }

  /** Called once all doors listen. */
  accept(): void {
    this.#accepting = true;
  }

  /** The stop has begun: readiness fails first, then the doors drain. */
  refuse(): void {
    this.#accepting = false;
  }
}

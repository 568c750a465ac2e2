/** Whether this process wants new requests: true from the moment all doors listen until the stop begins. */
export class Readiness {
  #accepting = false;

  get accepting(): boolean {
    return this.#accepting;
  }

  /** All doors listen. */
  accept(): void {
    this.#accepting = true;
  }

  /** The stop has begun: probes turn first, then the doors drain. */
  refuse(): void {
    this.#accepting = false;
  }
}

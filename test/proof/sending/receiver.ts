import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Random } from '../../support/random.ts';

/** An event as an endpoint saw it. Times are in milliseconds. */
export interface Arrival {
  readonly id: string;
  readonly body: string;
  readonly firstAt: number;
  /** When it was accepted first; Infinity if it never was. */
  acceptedAt: number;
}

/** Receives events at `/<path>`, keeps their first arrivals, and refuses some of them. */
export class ProofReceiver implements AsyncDisposable {
  /** The arrivals by path, then by token. */
  readonly at = new Map<string, Map<string, Arrival>>();
  /** Arrivals of any kind, repeated ones too. */
  total = 0;
  /** A token that came with another id or body than before. */
  readonly differing: string[] = [];
  readonly #server;

  constructor(random: Random) {
    this.#server = createServer(async (request, response) => {
      try {
        const body = await text(request);
        const isAccepted = !random.chance(0.15);
        this.#note(String(request.url).slice(1), String(request.headers['webhook-id']), body, isAccepted);
        response.writeHead(isAccepted ? 204 : 500).end();
      } catch {
        // The sender was killed.
        response.destroy();
      }
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #note(path: string, id: string, body: string, isAccepted: boolean): void {
    const { data } = JSON.parse(body) as { readonly data: { readonly token: string } };
    const now = performance.now();
    const known = this.at.get(path) ?? new Map<string, Arrival>();
    this.at.set(path, known);
    const arrival = known.get(data.token) ?? { id, body, firstAt: now, acceptedAt: Number.POSITIVE_INFINITY };
    known.set(data.token, arrival);
    if (arrival.id !== id || arrival.body !== body) this.differing.push(data.token);
    if (isAccepted) arrival.acceptedAt = Math.min(arrival.acceptedAt, now);
    this.total++;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

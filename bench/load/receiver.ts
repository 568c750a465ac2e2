import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** How long the last events may take, in milliseconds. */
const PATIENCE = 60_000;

/** Receives the events of all endpoints, whose URLs differ in their paths, and notes the first arrival of each. */
export class Receiver implements AsyncDisposable {
  readonly origin: string;
  readonly #server: Server;
  /** The times of arrival, by `performance.now()`, by event and then by path. */
  #arrivals = new Map<string, Map<string, number>>();
  #count = 0;
  /** The path and the secret of the endpoint whose next signature is checked, and how that ended. */
  #probe: { readonly path: string; readonly secret: string; isValid?: boolean } | undefined;

  private constructor(server: Server) {
    this.#server = server;
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', async (request, response) => {
      const at = performance.now();
      try {
        const body = await text(request);
        this.#note(request, body, at);
        response.writeHead(204).end();
      } catch {
        response.destroy();
      }
    });
  }

  static async open(): Promise<Receiver> {
    const server = createServer({ keepAliveTimeout: 60_000 });
    server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 });
    await once(server, 'listening');
    return new Receiver(server);
  }

  #note({ url = '', headers }: IncomingMessage, body: string, at: number): void {
    const id = String(headers['webhook-id']);
    const of = this.#arrivals.get(id) ?? new Map<string, number>();
    this.#arrivals.set(id, of);
    if (!of.has(url)) this.#count++;
    if (!of.has(url)) of.set(url, at);
    if (this.#probe?.path !== url) return;
    const { secret } = this.#probe;
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const signed = createHmac('sha256', key).update(`${id}.${headers['webhook-timestamp']}.${body}`);
    this.#probe.isValid = headers['webhook-signature'] === `v1,${signed.digest('base64')}`;
  }

  /** Forgets what has arrived. Checks a signature of the endpoint at `path`, if one is given. */
  begin(path?: string, secret = ''): void {
    this.#arrivals = new Map();
    this.#count = 0;
    this.#probe = path === undefined ? undefined : { path, secret };
  }

  /**
   * Waits until each of these events has arrived at `endpoints` endpoints. Resolves to the times by event. Rejects if
   * one is lost, or if a signature is wrong.
   */
  async allOf(events: readonly string[], endpoints: number): Promise<ReadonlyMap<string, readonly number[]>> {
    const total = events.length * endpoints;
    const deadline = performance.now() + PATIENCE;
    while (this.#count < total && performance.now() < deadline) await delay(2);
    const times = new Map(events.map((id) => [id, [...(this.#arrivals.get(id)?.values() ?? [])]]));
    for (const [id, { length }] of times)
      if (length !== endpoints) throw new Error(`event ${id} arrived at ${length} of ${endpoints} endpoints`);
    if (this.#probe !== undefined && this.#probe.isValid !== true) throw new Error('a signature is wrong');
    return times;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

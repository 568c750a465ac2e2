import type { Exchange } from '../../http/endpoint.ts';
import type { FastifyExchange } from '../../http/fastify-exchange.ts';
import type { Exposed } from '../access/exposure.ts';
import { originOf } from '../discovery/origin.ts';
import type { DoorOptions } from '../options.ts';

/** The documents that describe the doors. They are made when they are asked for: nothing of them is in memory before. */
export class ApiDocuments {
  /** The endpoints that are exposed, once that is known. */
  exposed: readonly Exposed[] = [];
  readonly #options: DoorOptions;
  readonly #prefix: string;

  /** `prefix` stands before the paths of the endpoints that clients see. */
  constructor(options: DoorOptions, prefix: string) {
    this.#options = options;
    this.#prefix = prefix;
  }

  /** The names of the doors that are described. */
  doors(): readonly string[] {
    return [...(this.#options.apis?.doors.keys() ?? []), 'management'];
  }

  /** The schema of the GraphQL door; undefined where it is not open. */
  sdl(): string | undefined {
    return this.#options.apis?.sdl();
  }

  /** The document of one door, or of all. The exchange has to be one that Fastify brought. */
  async document(exchange: Exchange, only?: string): Promise<object> {
    const { apis, endpoints, users, build } = this.#options;
    const { openApiDocument, managementApi } = await import('./describe.ts');
    const own = managementApi({ endpoints, users, prefix: this.#prefix, exposed: this.exposed });
    const others = await Promise.all(Array.from(apis?.doors.values() ?? [], ({ api }) => api()));
    const origin = originOf((exchange as FastifyExchange).request);
    const servers = Array.from(apis?.doors ?? [], ([door, { port }]) => [door, withPort(origin, port())]);
    return openApiDocument(
      [...others, own].filter(({ door }) => only === undefined || door === only),
      {
        title: build.name,
        version: build.version,
        servers: Object.fromEntries([...servers, ['management', origin]]),
      },
    );
  }
}

/** The same host on another port, as far as the client's way there tells. */
function withPort(origin: string, port: number | undefined): string {
  if (port === undefined) return origin;
  const url = new URL(origin);
  url.port = String(port);
  return url.origin;
}

import type { Exchange, Reply } from '../../http/endpoint.ts';
import type { ApiDocuments } from '../api/api-documents.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { NOT_FOUND } from '../management-errors.ts';
import { COMMON_HEADERS } from '../replies.ts';

/** The openapi endpoint: what the doors take and answer, as OpenAPI 3.1; the schema of GraphQL in its own language. */
export function openApiEndpoint(documents: ApiDocuments): ManagementEndpoint {
  async function part(exchange: Exchange): Promise<Reply> {
    const { param: door } = exchange;
    const sdl = door === 'graphql' ? documents.sdl() : undefined;
    if (sdl !== undefined) {
      return { status: 200, type: 'text/plain; charset=utf-8', body: sdl, headers: COMMON_HEADERS };
    }
    if (!documents.doors().includes(door)) throw NOT_FOUND;
    return documentReply(documents, exchange, door);
  }

  return {
    id: 'openapi',
    about: 'What each door takes and answers: OpenAPI 3.1, and the schema of GraphQL.',
    routes: () => ({
      '/openapi': { get: (exchange) => documentReply(documents, exchange), fast: false },
      '/openapi/{door}': { get: part, fast: false },
    }),
  };
}

/** The document of all doors, or of one. */
export async function documentReply(
  documents: ApiDocuments,
  exchange: Exchange,
  door?: string,
): Promise<Reply> {
  const body = JSON.stringify(await documents.document(exchange, door));
  return { status: 200, type: 'application/json', body, headers: COMMON_HEADERS };
}

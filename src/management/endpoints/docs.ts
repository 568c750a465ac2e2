import { assetReplies } from '../../http/built-page/asset-reply.ts';
import { builtPage, readManifest } from '../../http/built-page/manifest.ts';
import type { Exchange, Reply } from '../../http/endpoint.ts';
import type { ApiDocuments } from '../api/api-documents.ts';
import { docsPage, notBuiltPage } from '../docs-page/html-page.ts';
import type { ManagementEndpoint } from '../management-endpoint.ts';
import { NOT_FOUND } from '../management-errors.ts';
import { documentReply } from './openapi.ts';

/** The docs endpoint: a page for browsers that shows the document of all doors; it loads nothing from elsewhere. */
export function docsEndpoint(documents: ApiDocuments, directory = builtPage('docs')): ManagementEndpoint {
  return {
    id: 'docs',
    about: 'The reference of all doors, as a page for browsers.',
    routes() {
      const manifest = readManifest(directory);
      const page = manifest === undefined ? notBuiltPage() : docsPage(manifest);
      const asset = manifest && assetReplies(manifest, directory);
      async function file(exchange: Exchange): Promise<Reply> {
        if (exchange.param === 'openapi') return documentReply(documents, exchange);
        // For HEAD Fastify would take the length of an empty body.
        const found = await asset?.(exchange.param, { method: 'GET', headers: exchange.headers });
        if (found === undefined) throw NOT_FOUND;
        return found;
      }
      return {
        '/docs': { get: () => page },
        '/docs/{file}': { get: file, fast: false },
      };
    },
  };
}

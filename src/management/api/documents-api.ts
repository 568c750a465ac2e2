import { pathParameter } from '../../http/openapi/api.ts';
import { object, text } from '../../http/openapi/schema.ts';
import type { EndpointPaths } from './shapes.ts';

const DOCUMENT = object({ openapi: { const: '3.1.0' }, info: { type: 'object' }, paths: { type: 'object' } });
const TYPE = 'application/vnd.oai.openapi+json;version=3.1';

/** The endpoints that describe the doors. */
export const documentsApi: EndpointPaths = {
  '/openapi': {
    get: {
      id: 'readOpenApi',
      summary: 'This document',
      replies: {
        200: { description: 'OpenAPI 3.1.', content: { 'application/json': DOCUMENT, [TYPE]: DOCUMENT } },
      },
    },
  },
  '/openapi/{door}': {
    get: {
      id: 'readDoorApi',
      summary: 'The part of one door, or the schema of the GraphQL door',
      parameters: [pathParameter('door', 'The name of a door: rest, management, webhook, graphql.', text())],
      replies: {
        200: {
          description: 'OpenAPI 3.1; of GraphQL the definition language.',
          content: {
            'application/json': DOCUMENT,
            [TYPE]: DOCUMENT,
            'text/plain; charset=utf-8': text(),
          },
        },
      },
      refusals: ['NOT_FOUND'],
    },
  },
  '/docs': {
    get: {
      id: 'readDocs',
      summary: 'A page of all this for browsers',
      replies: { 200: { description: 'HTML.', content: { 'text/html; charset=utf-8': text() } } },
    },
  },
};

import type { FastifyInstance } from 'fastify';
import { parseJsonBody } from '../http/body/json-body.ts';
import { HttpProblem } from '../http/problem.ts';

/** Bodies are JSON in UTF-8 and nothing else (415): a form of another site cannot send one (GraphQL over HTTP, "POST"). */
export function readGraphqlBodies(app: FastifyInstance, bodyLimit: number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer', bodyLimit }, (request, body, done) => {
    try {
      refuseOtherCharsets(request.headers['content-type']);
      done(null, parseJsonBody(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

function refuseOtherCharsets(contentType = ''): void {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    throw new HttpProblem(415, 'UNSUPPORTED_CHARSET', 'The body must be UTF-8');
  }
}

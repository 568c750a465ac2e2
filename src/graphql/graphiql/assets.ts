import type { FastifyPluginCallback } from 'fastify';
import { assetReplies } from '../../http/built-page/asset-reply.ts';
import type { Manifest } from '../../http/built-page/manifest.ts';
import { send } from '../../http/send-reply.ts';

/** Serves the built files below `{path}/assets/`. */
export function graphiqlAssets(path: string, manifest: Manifest, directory: URL): FastifyPluginCallback {
  const replyTo = assetReplies(manifest, directory);
  const base = path.endsWith('/') ? path : `${path}/`;

  return (app, _options, done) => {
    app.route<{ Params: { name: string } }>({
      method: ['GET', 'HEAD'],
      url: `${base}assets/:name`,
      handler: async (request, reply) => {
        const found = await replyTo(request.params.name, request);
        return found === undefined ? reply.callNotFound() : send(reply, found);
      },
    });
    done();
  };
}

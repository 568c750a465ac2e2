import type { FastifyPluginCallback } from 'fastify';
import { assetReplies } from '../../http/built-page/asset-reply.ts';
import type { Manifest } from '../../http/built-page/manifest.ts';
import { replyBudgetOf } from '../../http/reply/reply-pieces.ts';
import { send } from '../../http/send-reply.ts';

/** Serves the built files below `{path}/assets/`. */
export function graphiqlAssets(path: string, manifest: Manifest, directory: URL): FastifyPluginCallback {
  const replyTo = assetReplies(manifest, directory);
  const base = path.endsWith('/') ? path : `${path}/`;

  return (app, _options, done) => {
    // Only before the start can an application get a bound that it does not have.
    replyBudgetOf(app);
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

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { FastifyPluginCallback } from 'fastify';
import { chooseCoding, storedName } from './content-coding.ts';
import type { BuiltFile, Manifest } from './manifest.ts';

/** Sent with every file: its name holds a hash of its content, so a copy never goes stale. */
const headers = {
  'cache-control': 'public, max-age=31536000, immutable',
  vary: 'accept-encoding',
  'x-content-type-options': 'nosniff',
  // A worker is bound by the policy of its own script: ours need nothing from any network.
  'content-security-policy': "default-src 'none'",
} as const;

/**
 * Serves the built files of a page below `{path}/assets/`. Nothing is kept in memory: a file is streamed from
 * the disk when it is asked for, and browsers ask once.
 */
export function pageAssets(path: string, manifest: Manifest, directory: URL): FastifyPluginCallback {
  const files = new Map<string, BuiltFile>(Object.entries(manifest.files));
  const base = path.endsWith('/') ? path : `${path}/`;

  return (app, _options, done) => {
    app.route<{ Params: { name: string } }>({
      method: ['GET', 'HEAD'],
      url: `${base}assets/:name`,
      handler: async (request, reply) => {
        const { name } = request.params;
        // Only names that the build made: no request can point outside its folder.
        const file = files.get(name);
        if (file === undefined) return reply.callNotFound();

        const coding = chooseCoding(request.headers['accept-encoding'], file.codings);
        const stored = new URL(storedName(name, coding), directory);
        const stats = await stat(stored).catch(() => undefined);
        if (stats === undefined) return reply.callNotFound();

        reply.headers(headers).headers({ 'content-type': file.contentType, 'content-length': stats.size });
        if (coding !== undefined) reply.header('content-encoding', coding);
        return reply.send(request.method === 'HEAD' ? undefined : createReadStream(stored));
      },
    });
    done();
  };
}

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import type { Reply } from '../endpoint.ts';
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

/** Answers with a file of a page by its name; undefined where there is none. */
export type AssetReply = (
  name: string,
  request: { readonly method: string; readonly headers: Readonly<IncomingHttpHeaders> },
) => Promise<Reply | undefined>;

/**
 * Serves the built files of a page. Nothing is kept in memory: a file is streamed from the disk when it is asked for, and
 * browsers ask once.
 */
export function assetReplies(manifest: Manifest, directory: URL): AssetReply {
  const files = new Map<string, BuiltFile>(Object.entries(manifest.files));
  return async (name, request) => {
    // Only names that the build made: no request can point outside its folder.
    const file = files.get(name);
    if (file === undefined) return undefined;
    const coding = chooseCoding(request.headers['accept-encoding'], file.codings);
    const stored = new URL(storedName(name, coding), directory);
    const stats = await stat(stored).catch(() => undefined);
    if (stats === undefined) return undefined;
    return {
      status: 200,
      type: file.contentType,
      body: request.method === 'HEAD' ? '' : createReadStream(stored),
      headers: {
        ...headers,
        'content-length': String(stats.size),
        ...(coding === undefined ? {} : { 'content-encoding': coding }),
      },
    };
  };
}

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import fastify, { type FastifyInstance } from 'fastify';
import type { Manifest } from '../http/pages.ts';
import { openGraphiql } from './graphql.ts';

const script = Buffer.from('console.log("ä");\n'.repeat(100));
const font = Buffer.from([0, 1, 2, 255]);
const SCRIPT_TYPE = 'text/javascript; charset=utf-8';
const manifest: Manifest = {
  inputs: 'test',
  script: 'graphiql-1.js',
  style: 'graphiql-1.css',
  files: {
    'graphiql-1.js': { contentType: SCRIPT_TYPE, size: script.length, isCompressed: true },
    'font-1.woff2': { contentType: 'font/woff2', size: font.length, isCompressed: false },
    'lost-1.js': { contentType: SCRIPT_TYPE, size: 1, isCompressed: false },
  },
};

describe('openGraphiql', () => {
  let folder: string;
  let app: FastifyInstance;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'graphiql-'));
    await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest));
    await writeFile(join(folder, 'graphiql-1.js.gz'), gzipSync(script));
    await writeFile(join(folder, 'font-1.woff2'), font);
    const graphiql = openGraphiql('/graphql', { directory: pathToFileURL(`${folder}/`) });
    app = fastify().register(graphiql.assets);
  });
  after(async () => {
    await app.close();
    await rm(folder, { recursive: true });
  });

  const codings = [
    { header: 'gzip, deflate, br', coding: 'gzip', decode: gunzipSync },
    { header: 'identity', coding: undefined, decode: (body: Buffer) => body },
  ];
  for (const { header, coding, decode } of codings) {
    it(`serves a file to a client that accepts ${header}`, async () => {
      const url = '/graphql/assets/graphiql-1.js';
      const { statusCode, headers, rawPayload } = await app.inject({
        url,
        headers: { 'accept-encoding': header },
      });
      assert.equal(statusCode, 200);
      assert.deepEqual(decode(rawPayload), script);
      assert.equal(headers['content-encoding'], coding);
      assert.equal(headers['content-length'], String(rawPayload.length));
      assert.equal(headers['content-type'], 'text/javascript; charset=utf-8');
      assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
      assert.equal(headers.vary, 'accept-encoding');
      assert.equal(headers['x-content-type-options'], 'nosniff');

      const head = await app.inject({ method: 'HEAD', url, headers: { 'accept-encoding': header } });
      assert.equal(head.statusCode, 200);
      assert.equal(head.rawPayload.length, 0);
      assert.deepEqual({ ...head.headers, date: '' }, { ...headers, date: '' });
    });
  }

  it('serves a file that is stored plain as it is', async () => {
    const { headers, rawPayload } = await app.inject({
      url: '/graphql/assets/font-1.woff2',
      headers: { 'accept-encoding': 'gzip' },
    });
    assert.deepEqual(rawPayload, font);
    assert.equal(headers['content-encoding'], undefined);
  });

  for (const name of [
    'manifest.json',
    'graphiql-1.js.gz',
    'lost-1.js',
    '..%2fgraphiql-1.js',
    '%2e%2e%2f%2e%2e%2fpackage.json',
    '__proto__',
    '',
  ]) {
    it(`has nothing called "${name}"`, async () => {
      const { statusCode, headers } = await app.inject({ url: `/graphql/assets/${name}` });
      assert.equal(statusCode, 404);
      assert.equal(headers['cache-control'], undefined);
    });
  }

  it('makes a page that finds its files from any path', () => {
    const html = (path: string) =>
      String(openGraphiql(path, { directory: pathToFileURL(`${folder}/`) }).page.body);
    assert.match(html('/graphql'), /src="\.\/graphql\/assets\/graphiql-1\.js"/);
    assert.match(html('/graphql'), /href="\.\/graphql\/assets\/graphiql-1\.css"/);
    assert.match(html('/api/v1/query'), /src="\.\/query\/assets\/graphiql-1\.js"/);
    assert.match(html('/graphql/'), /src="\.\/assets\/graphiql-1\.js"/);
    assert.match(html('/'), /src="\.\/assets\/graphiql-1\.js"/);
  });

  it('serves the files below the root path too', async () => {
    const { assets } = openGraphiql('/', { directory: pathToFileURL(`${folder}/`) });
    await using other = fastify().register(assets);
    assert.equal((await other.inject('/assets/font-1.woff2')).statusCode, 200);
  });

  it('bounds the page to its own origin and keeps it out of caches', () => {
    const { type, headers = {} } = openGraphiql('/graphql', { directory: pathToFileURL(`${folder}/`) }).page;
    assert.equal(type, 'text/html; charset=utf-8');
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(headers.vary, 'accept');
    const policy = headers['content-security-policy'] ?? '';
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "worker-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "form-action 'none'",
      "base-uri 'none'",
    ]) {
      assert.ok(policy.split('; ').includes(part), part);
    }
  });

  it('says how to build the tool while there is none', async () => {
    const graphiql = openGraphiql('/graphql', { directory: pathToFileURL(`${folder}/nowhere/`) });
    const html = String(graphiql.page.body);
    assert.match(html, /npm run build:pages/);
    assert.doesNotMatch(html, /<script/);
    await using bare = fastify().register(graphiql.assets);
    assert.equal((await bare.inject('/graphql/assets/graphiql-1.js')).statusCode, 404);
  });

  it('takes a damaged manifest for none', async () => {
    await writeFile(join(folder, 'manifest.json'), '{"script":');
    try {
      const { page } = openGraphiql('/graphql', { directory: pathToFileURL(`${folder}/`) });
      assert.match(String(page.body), /npm run build:pages/);
    } finally {
      await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest));
    }
  });
});

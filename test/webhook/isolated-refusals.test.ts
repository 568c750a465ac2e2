import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { openDatabase } from 'portico/database';
import { webhook } from 'portico/webhook';
import { createService, loadConfig } from '../../src/index.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const REFUSED =
  /webhook\.handlers\.paid cannot be isolated: a worker thread imports its handlers from a configuration module .* functions cannot be sent to it/;

test('the plugin refuses to isolate a function that it is given', async () => {
  await using database = openDatabase('sqlite::memory:');
  const app = Fastify();
  const handlers = { paid: { handler: () => {}, isolate: true } };
  await assert.rejects(async () => app.register(webhook, { inbox: database.inbox, handlers }), REFUSED);
  await app.close();
});

test('a service without a configuration module refuses it, and takes the option without handlers', async () => {
  await using folder = await temporaryFolder();
  const env = {
    WEBHOOK_ISOLATE: 'true',
    DATABASE_URL: 'sqlite::memory:',
    INTERFACES: 'webhook',
    LOG_LEVEL: 'silent',
  };
  const config = await loadConfig({ argv: [], env, cwd: folder.path });
  await (await createService(config)).stop();
  const code = { ...config.code, handlers: new Map([['paid', { handler: () => {} }]]) };
  await assert.rejects(createService({ ...config, code }), REFUSED);
});

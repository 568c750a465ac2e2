import Fastify from 'fastify';
import { openDatabase } from 'portico/database';
import { webhook } from 'portico/webhook';

const app = Fastify({ logger: true });
const database = await openDatabase(process.env.DATABASE_URL ?? 'sqlite:webhooks.db');
app.addHook('onClose', () => database[Symbol.asyncDispose]());

app.get('/', () => ({ hello: 'world' }));
app.register(webhook, {
  inbox: database.inbox,
  secrets: ['demo-token'],
  sources: { github: { scheme: 'github', secrets: 'demo-secret' } },
  handlers: {
    new_commit: async ({ data }, { log }) => log.info({ data }, 'deploying'),
    order: {
      handler: ({ data }, { log }) => log.info({ data }, 'packing'),
      concurrency: 2,
      order: '/data/customer',
    },
  },
});

// Nothing more can be stored, so another process had better begin anew.
database.failed.addEventListener('abort', () => process.exit(1));
process.once('SIGTERM', () => app.close());
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 3000) });

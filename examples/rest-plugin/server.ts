import Fastify from 'fastify';
import { openDatabase } from 'portico/database';
import { rest } from 'portico/rest';

const app = Fastify({ logger: true });
const database = await openDatabase(process.env.DATABASE_URL ?? 'sqlite:users.db');
app.addHook('onClose', () => database[Symbol.asyncDispose]());

app.get('/', () => ({ hello: 'world' }));
app.register(rest, { prefix: '/api', users: database.users });

// The same store, from code: each create is durable when its promise resolves.
app.post('/sign-up', async (_request, reply) => {
  const id = await database.users.create({ name: 'Newcomer', email: 'newcomer@example.com' });
  return reply.code(201).send({ id });
});

// Nothing more can be stored, so another process had better begin anew.
database.failed.addEventListener('abort', () => process.exit(1));
process.once('SIGTERM', () => app.close());
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 8000) });

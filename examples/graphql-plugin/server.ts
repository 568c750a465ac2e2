import Fastify from 'fastify';
import { graphql } from 'portico/graphql';
import { schema } from './schema.ts';

const app = Fastify({ logger: true });

app.get('/', () => ({ hello: 'world' }));
app.register(graphql, { schema, context: (request) => ({ reader: request.headers['x-reader'] }) });

process.once('SIGTERM', () => app.close());
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 4000) });

import Fastify from 'fastify';
import { management } from 'portico/management';

const app = Fastify({ logger: true });

app.get('/', () => ({ hello: 'world' }));
app.register(management);

process.once('SIGTERM', () => app.close());
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 3000) });

import { defineConfig } from 'portico';

export default defineConfig({
  rest: {
    setup(app) {
      // Before every route of the door, Portico's own among them.
      app.addHook('onRequest', async (request, reply) => {
        if (request.headers['x-api-key'] !== 'demo-key') {
          return reply.code(401).send({ status: 'error', message: 'Unauthorized' });
        }
      });
      app.get('/greeting/:name', (request) => {
        const { name } = request.params as { readonly name: string };
        return { status: 'success', data: `Hello, ${name}!` };
      });
    },
  },
  webhook: {
    async setup(app) {
      // Plugins too: await app.register(import('@fastify/...')).
      await app.register(
        async (scope) => {
          scope.get('/version', () => ({ version: 1 }));
        },
        { prefix: '/internal' },
      );
    },
  },
});

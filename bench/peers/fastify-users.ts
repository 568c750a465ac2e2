import Fastify from 'fastify';
import { address } from './listen.ts';
import { CREATED, NOT_CREATED, NOT_FOUND, openUsers, readUser } from './users-table.ts';

const users = await openUsers();
const app = Fastify({ logger: false });
app.get('/users', () => ({ status: 'success', data: users.list() }));
app.get<{ Params: { id: string } }>('/users/:id', (request, reply) => {
  const user = users.find(Number(request.params.id));
  reply.send(user === undefined ? NOT_FOUND : { status: 'success', data: user });
});
app.post('/users', (request, reply) => {
  const user = readUser(request.body);
  if (user === undefined) return reply.code(400).send(NOT_CREATED);
  users.create(user.name, user.email);
  return reply.send(CREATED);
});
await app.listen(address);

import express from 'express';
import { address } from './listen.ts';
import { CREATED, NOT_CREATED, NOT_FOUND, openUsers, readUser } from './users-table.ts';

const users = await openUsers();
const app = express();
// Portico sends neither, so Express need not either.
app.disable('etag').disable('x-powered-by');
app.get('/users', (_request, response) => {
  response.json({ status: 'success', data: users.list() });
});
app.get('/users/:id', (request, response) => {
  const user = users.find(Number(request.params.id));
  response.json(user === undefined ? NOT_FOUND : { status: 'success', data: user });
});
app.post('/users', express.json(), (request, response) => {
  const user = readUser(request.body);
  if (user === undefined) {
    response.status(400).json(NOT_CREATED);
    return;
  }
  users.create(user.name, user.email);
  response.json(CREATED);
});
app.listen(address.port, address.host);

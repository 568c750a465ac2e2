import Fastify from 'fastify';
import pg from 'pg';
import { address } from './listen.ts';
import { CREATED, NOT_CREATED, NOT_FOUND, readUser } from './users-table.ts';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
await pool.query(`CREATE TABLE IF NOT EXISTS users (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL)`);
// Reads ids as numbers, not as text.
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

const FIND = { name: 'find', text: 'SELECT id, name, email FROM users WHERE id = $1' };
const CREATE = { name: 'create', text: 'INSERT INTO users (name, email) VALUES ($1, $2)' };
const app = Fastify({ logger: false });
app.get<{ Params: { id: string } }>('/users/:id', async (request) => {
  const { rows } = await pool.query({ ...FIND, values: [Number(request.params.id)] });
  return rows.length === 0 ? NOT_FOUND : { status: 'success', data: rows[0] };
});
app.post('/users', async (request, reply) => {
  const user = readUser(request.body);
  if (user === undefined) return reply.code(400).send(NOT_CREATED);
  await pool.query({ ...CREATE, values: [user.name, user.email] });
  return CREATED;
});
await app.listen(address);

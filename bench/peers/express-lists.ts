import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import express, { type Request, type Response } from 'express';
import { address } from './listen.ts';
import { openDatabase } from './sqlite.ts';
import { readUser } from './users-table.ts';

// Typical additions to users in Express: pages with offsets as in json-server and with keysets, ETags, an
// import and an export of lines.

/** Lines that an import stores in one transaction. */
const BATCH = 2_000;
/** Users that an export reads at once. */
const PAGE = 1_000;

const db = await openDatabase('users.db');
db.exec(`CREATE TABLE IF NOT EXISTS users (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, email TEXT NOT NULL) STRICT`);
const all = db.prepare('SELECT id, name, email FROM users ORDER BY id');
const byOffset = db.prepare('SELECT id, name, email FROM users ORDER BY id LIMIT ? OFFSET ?');
const byKey = db.prepare('SELECT id, name, email FROM users WHERE id > ? ORDER BY id LIMIT ?');
const insert = db.prepare('INSERT INTO users (name, email) VALUES (?, ?)');

const app = express();
app.disable('etag').disable('x-powered-by');
app.get('/users', async (request, response) => {
  const { _page, _limit, after } = request.query;
  const limit = Number(_limit ?? 100);
  if (request.accepts(['json', 'application/x-ndjson']) === 'application/x-ndjson') await exportTo(response);
  else if (after !== undefined) sendUsers(request, response, byKey.all(Number(after), limit));
  else if (_page !== undefined)
    sendUsers(request, response, byOffset.all(limit, (Number(_page) - 1) * limit));
  else sendUsers(request, response, all.all());
});
app.post('/users', async (request, response) => {
  response.type('application/x-ndjson');
  let batch: { readonly line: number; readonly user: ReturnType<typeof readUser> }[] = [];
  let line = 0;
  const report = { created: 0, refused: 0 };
  const store = () => {
    db.exec('BEGIN');
    for (const { user } of batch) {
      if (user === undefined) report.refused++;
      else {
        insert.run(user.name, user.email);
        report.created++;
      }
    }
    db.exec('COMMIT');
    batch = [];
  };
  for await (const text of createInterface({ input: request })) {
    line++;
    batch.push({ line, user: readUser(parsed(text)) });
    if (batch.length === BATCH) store();
  }
  store();
  response.end(`${JSON.stringify(report)}\n`);
});
app.listen(address.port, address.host);

/** Sends users with an ETag of their text, like Express's own ETags. */
function sendUsers(request: Request, response: Response, users: readonly unknown[]): void {
  const text = JSON.stringify({ status: 'success', data: users });
  const tag = `"${createHash('sha1').update(text).digest('base64url')}"`;
  response.set('etag', tag);
  if (request.headers['if-none-match'] === tag) response.status(304).end();
  else response.type('json').send(text);
}

async function exportTo(response: Response): Promise<void> {
  response.type('application/x-ndjson');
  let last = 0;
  for (;;) {
    const users = byKey.all(last, PAGE) as readonly { readonly id: number }[];
    if (users.length === 0) break;
    last = users.at(-1)?.id ?? last;
    const isTaken = response.write(users.map((user) => `${JSON.stringify(user)}\n`).join(''));
    if (!isTaken) await new Promise((resolve) => response.once('drain', resolve));
  }
  response.end();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { address } from './listen.ts';

// What Node can do at all: it looks at nothing and sends the same bytes that Portico sends.
const { type, body } = JSON.parse(readFileSync('reply.json', 'utf8')) as { type: string; body: string };
const headers = { 'content-type': type, 'content-length': Buffer.byteLength(body) };
createServer((_request, response) => {
  response.writeHead(200, headers).end(body);
}).listen(address);

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { address } from './listen.ts';

// The upper bound of Node: inspects nothing and sends the same bytes as Portico.
const { type, body } = JSON.parse(readFileSync('reply.json', 'utf8')) as { type: string; body: string };
const headers = { 'content-type': type, 'content-length': Buffer.byteLength(body) };
createServer((_request, response) => {
  response.writeHead(200, headers).end(body);
}).listen(address);

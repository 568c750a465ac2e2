import { createServer } from 'node:http';
import { address } from './listen.ts';

// The least that starts and answers.
createServer((_request, response) => {
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end('{"data":{"hello":"Hello from Portico!"}}');
}).listen(address);

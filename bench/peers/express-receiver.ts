import express from 'express';
import { address } from './listen.ts';

// What many write first: it parses the body, says that it has received it, and stores nothing.
const app = express();
// What costs it most beside that, and Portico does not send.
if (process.env.AS_IT_COMES === undefined) app.disable('etag').disable('x-powered-by');
app.use(express.json());
app.post('/webhook', (_request, response) => {
  response.send('Webhook received');
});
app.listen(address.port, address.host);

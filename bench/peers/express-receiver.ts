import express from 'express';
import { address } from './listen.ts';

// A typical first receiver: parses the body, confirms the receipt and stores nothing.
const app = express();
// The most expensive of Express's defaults, which Portico does not send.
if (process.env.AS_IT_COMES === undefined) app.disable('etag').disable('x-powered-by');
app.use(express.json());
app.post('/webhook', (_request, response) => {
  response.send('Webhook received');
});
app.listen(address.port, address.host);

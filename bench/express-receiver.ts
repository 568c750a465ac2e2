import express from 'express';

// What many write first: it parses the body, says that it has received it, and stores nothing.
const app = express();
app.use(express.json());
app.post('/webhook', (_request, response) => {
  response.send('Webhook received');
});
const server = app.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  process.stdout.write(`http://127.0.0.1:${port}\n`);
});

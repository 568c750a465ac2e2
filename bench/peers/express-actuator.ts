import express from 'express';
import actuator from 'express-actuator';
import { openChecks } from './health-checks.ts';
import { address } from './listen.ts';

const app = express();
app.disable('etag').disable('x-powered-by');
const customEndpoints = process.env.CHECKS === 'yes' ? [await checkedHealth()] : [];
app.use(actuator({ basePath: '/actuator', customEndpoints }));
app.listen(address.port, address.host);

/** The documented way to add checks to express-actuator: a custom endpoint instead of the built-in one. */
async function checkedHealth() {
  const check = await openChecks();
  return {
    id: 'health',
    controller: (_request: express.Request, response: express.Response) => {
      check().then(
        (health) => response.status(health.status === 'UP' ? 200 : 503).json(health),
        (error) => response.status(503).json({ status: 'DOWN', details: { error: String(error) } }),
      );
    },
  };
}

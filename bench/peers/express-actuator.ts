import express from 'express';
import actuator from 'express-actuator';
import { address } from './listen.ts';

const app = express();
app.disable('etag').disable('x-powered-by');
app.use(actuator({ basePath: '/actuator' }));
app.listen(address.port, address.host);

declare module 'express-actuator' {
  import type { RequestHandler } from 'express';

  const actuator: (options: { readonly basePath: string }) => RequestHandler;
  export = actuator;
}

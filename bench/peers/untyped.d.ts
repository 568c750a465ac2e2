declare module 'express-actuator' {
  import type { RequestHandler } from 'express';

  interface Options {
    readonly basePath: string;
    readonly customEndpoints: { readonly id: string; readonly controller: RequestHandler }[];
  }
  const actuator: (options: Options) => RequestHandler;
  export = actuator;
}

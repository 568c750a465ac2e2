import type { FastifyInstance } from 'fastify';

/** Hooks of the start and the stop. All others see requests, or can give a route a hook that does. */
const LIFECYCLE: ReadonlySet<string> = new Set(['onReady', 'onListen', 'preClose', 'onClose']);

/** Knows which scopes of an instance have hooks that see requests, which the fast path would not call. */
export class HookWatch {
  readonly #hooked = new WeakSet<object>();
  #app: FastifyInstance | undefined;
  #errorHandler: unknown;

  /** Notes the hooks that are added from now on, in all scopes: they share the methods of the instance. */
  watch(app: FastifyInstance): void {
    const { addHook } = app;
    this.#app = app;
    this.#errorHandler = app.errorHandler;
    const hooked = this.#hooked;
    app.addHook = function (this: FastifyInstance, ...args: Parameters<typeof addHook>) {
      if (!LIFECYCLE.has(args[0])) hooked.add(this);
      return addHook.apply(this, args);
    } as typeof addHook;
  }

  /** Whether a hook of the scope, or of one around it, sees the scope's requests. */
  isHooked(scope: FastifyInstance): boolean {
    // A scope's prototype is the scope around it.
    for (let each: object | null = scope; each !== null; each = Object.getPrototypeOf(each)) {
      if (this.#hooked.has(each)) return true;
    }
    return this.#hasOtherErrors(scope);
  }

  /** Whether the instance was given another error handler, which the scope has too: the fast path has that of the door. */
  #hasOtherErrors({ errorHandler }: FastifyInstance): boolean {
    return errorHandler === this.#app?.errorHandler && errorHandler !== this.#errorHandler;
  }
}

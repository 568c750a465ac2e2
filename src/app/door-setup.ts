import type { FastifyInstance } from 'fastify';
import { formatPlace, placeInStack } from '../config/load-failure.ts';
import { displayPath } from '../config/module.ts';
import { describeError, ExpectedError } from '../core/errors.ts';
import { hideSecrets, type SecretTexts } from '../core/redaction.ts';
import { oneLine } from '../core/text.ts';
import type { ListedRoute } from '../http/routes.ts';
import type { DoorSetup } from './load-config.ts';

/** The `setup` of a door failed or conflicts with the door's own routes; the start ends with this message. */
export class DoorSetupError extends ExpectedError {
  override readonly name = 'DoorSetupError';
  readonly code = 'DOOR_SETUP';
}

/** The arguments of a setup. */
interface SetupOptions {
  readonly door: string;
  readonly setup: DoorSetup;
  /** Absolute path of the configuration module; undefined if there is none. */
  readonly file: string | undefined;
  readonly secrets: SecretTexts;
  /** The path below which every route is Portico's, if there is one. */
  readonly ownPath: string | undefined;
  /** The routes of the door so far. */
  routes(): readonly ListedRoute[];
}

/** The error to throw when a door fails to build: a DoorSetupError if its setup caused it. */
type ExplainFailure = (failure: unknown) => unknown;

/** Runs a setup before Portico's plugins are registered, so that its hooks see their requests. */
export function addSetup(app: FastifyInstance, options: SetupOptions): ExplainFailure {
  const { door, setup, file, secrets, ownPath, routes } = options;
  const name = `${file === undefined ? 'configuration' : displayPath(file, process.cwd())}: ${door}.setup`;
  let ended = false;

  const plugin = async (scope: FastifyInstance) => {
    try {
      await setup(scope);
      // Waits for the plugins that the setup has registered.
      await scope.after();
    } catch (cause) {
      throw new DoorSetupError(reason(cause), { cause });
    }
    const inside = routes().find(({ path }) => ownPath !== undefined && `${path}/`.startsWith(`${ownPath}/`));
    if (inside !== undefined) {
      const what = `adds ${inside.path} below ${ownPath}, where it would not be behind the log-in`;
      throw new DoorSetupError(`${name} ${what}; use management.endpoints, or another path`);
    }
    ended = true;
  };
  // In a scope of its own, the setup's hooks would not apply to the door's routes.
  app.register(Object.assign(plugin, { [Symbol.for('skip-override')]: true }));

  function reason(cause: unknown): string {
    const { code, message, stack } = Object(cause) as {
      readonly code?: unknown;
      readonly message?: unknown;
      readonly stack?: unknown;
    };
    const [, method, url] =
      (code === 'FST_ERR_DUPLICATED_ROUTE' &&
        /Method '\W*(\w+).*?' already declared for route '([^']+)'/.exec(String(message))) ||
      [];
    if (url !== undefined)
      return `${name} adds ${method} ${url}, which the door has already; choose another path`;
    const text = oneLine(hideSecrets(describeError(cause), secrets.texts));
    const rows = typeof stack === 'string' && file !== undefined ? stack.split('\n') : [];
    const place = placeInStack(rows.filter((row) => row.includes(file ?? '')).join('\n'), '');
    return `${name} failed: ${text}${place === undefined ? '' : ` (${formatPlace(place, process.cwd())})`}`;
  }

  return (failure) => {
    if (failure instanceof DoorSetupError) return failure;
    if (!isFastifyError(failure)) return failure;
    // Either Fastify's time limit for plugins, or a plugin of Portico adds a route that the setup has added
    // already.
    const text = ended ? reason(failure) : `${name} did not end in time; a promise in it is never settled`;
    return new DoorSetupError(text, { cause: failure });
  };
}

/** Fastify gives most of its errors a code. */
function isFastifyError(error: unknown): boolean {
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown };
  return String(code).startsWith('FST_ERR_') || String(message).startsWith('Not found handler already set');
}

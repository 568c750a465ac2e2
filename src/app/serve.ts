import { readApiTokens } from '../access/open-policy.ts';
import { type Config, loadConfig, type ModuleCheck } from '../config/load.ts';
import { knownScopes } from '../config/options/access.ts';
import { settingsOf } from '../config/options/options.ts';
import { describeError } from '../core/errors.ts';
import { readPackageInfo } from '../core/package-root.ts';
import { paintedLines, paintFor, printableLines } from '../core/text.ts';
import { MAX_PRE_STOP_DELAY } from '../telemetry/health.ts';
import { terminalLog } from '../telemetry/log.ts';
import { readWebhookSettings } from '../webhook/options.ts';
import { banner, doorAddresses, networkAddress } from './banner.ts';
import { consoleAddress } from './console.ts';
import { closedInConsole, exposedDoors, securedBy, securityAdvice } from './door-security.ts';
import { checkSchema } from './doors.ts';
import { createService, describeUnfinished, reportUnfinished, type Service } from './service.ts';

/**
 * Time after the pre-stop delay at which a stop that exceeds its own deadlines is forced, in milliseconds.
 */
const FORCED_EXIT = 10_000;

/**
 * A second signal within this many milliseconds counts as the first: npm forwards a signal that the terminal
 * has sent to the whole group.
 */
const ECHO = 300;

/**
 * Runs the service until it receives a signal or fails; resolves to the exit code.
 * Fails with ConfigError, DatabaseOpenError or ListenError, with nothing left open.
 */
export async function serve(argv: readonly string[]): Promise<number> {
  const config = await loadConfig({
    argv,
    env: process.env,
    cwd: process.cwd(),
    check: checkModule,
  });
  // On a terminal that shows both the log and the banner, the banner comes first.
  const terminal = process.stdout.isTTY && process.stderr.isTTY ? terminalLog() : undefined;
  await using service = await createService(config, { logStream: terminal });
  const stopped = stopReason(service, config);
  endOnUnexpectedErrors(service);

  const addresses = doorAddresses(await service.listen(), config);
  const { version } = readPackageInfo();
  // The banner goes to standard error; standard output is the log's.
  const look = {
    paint: paintFor(process.stderr),
    network: networkAddress(),
    console: consoleAddress(addresses, config),
    closed: closedInConsole(config),
  };
  process.stderr.write(paintedLines(`\n${banner(version, performance.now(), addresses, look)}\n`));
  service.log.info({ version, doors: Object.fromEntries(addresses) }, 'ready');
  terminal?.begin();
  if (look.console !== undefined && look.closed !== undefined) {
    service.log.info(
      { open: `set ${securedBy('management')}` },
      'users and deliveries closed in the console',
    );
  }
  const exposed = exposedDoors(config);
  if (exposed.length > 0) {
    service.log.warn(
      { host: config.settings.host, doors: exposed, secure: securityAdvice(exposed) },
      'doors reachable without credentials',
    );
  }

  const reason = await stopped;
  if (reason === 'failed') {
    service.log.fatal({ err: service.failed.reason }, 'store failed, stopping');
  } else {
    service.log.info(STOPPING[reason] ?? { signal: reason }, 'stopping');
  }
  {
    using _ = reportUnfinished(service.log, service.unfinished, FORCE[reason] ?? '');
    await service.stop();
  }
  if (reason !== 'failed') return 0;
  explain(`Stopped because the store failed: ${describeError(service.failed.reason)}.`);
  return 1;
}

/** Time to release running handlers after an unexpected error, in milliseconds. */
const CRASH_TIMEOUT = 2_000;

/** Ends the process after an uncaught error: its state can no longer be trusted. */
function endOnUnexpectedErrors(service: Service): void {
  let ending = false;
  const end = (error: unknown) => {
    if (ending) return;
    ending = true;
    service.log.fatal({ err: error }, 'unexpected error, stopping');
    const exit = () => {
      explain(`Ended by an unexpected error: ${describeError(error)}.`);
      process.exit(1);
    };
    setTimeout(exit, CRASH_TIMEOUT);
    service.crash(error).then(exit, exit);
  };
  process.on('uncaughtException', end).on('unhandledRejection', end);
}

/** Why the service stops: a signal, its own failure, a request to the management door, or the end of npm. */
type StopReason = 'SIGTERM' | 'SIGINT' | 'failed' | 'asked' | 'npm';

const STOPPING: Readonly<Partial<Record<StopReason, object>>> = {
  asked: { by: 'management door' },
  npm: { by: 'end of the npm script' },
};

/** How to end a stop at once, by its reason. */
const FORCE: Readonly<Partial<Record<StopReason, string>>> = {
  SIGINT: '; Ctrl+C again to force',
  SIGTERM: '; a second signal forces the end',
};

/** Prints, in one sentence, why the process ends with exit code 1. */
function explain(why: string): void {
  process.stderr.write(`${printableLines(`portico: ${why} Exit code 1.`)}\n`);
}

/** Resolves when the process is asked to stop or has to. A second signal ends the process at once. */
function stopReason(service: Service, config: Config): Promise<StopReason> {
  const { failed, stopRequested } = service;
  const { promise, resolve } = Promise.withResolvers<StopReason>();
  let stopping = false;
  let signalledAt: number | undefined;
  const end = (why: string): never => {
    const left = describeUnfinished(service.unfinished());
    explain(left === '' ? `${why}.` : `${why}, with ${left} unfinished; open deliveries run again.`);
    process.exit(1);
  };
  const begin = (reason: StopReason) => {
    if (stopping) return;
    stopping = true;
    const longest = (config.settings['shutdown.preStopDelay'] ?? MAX_PRE_STOP_DELAY) + FORCED_EXIT;
    const overdue = () => {
      if (service.stopped)
        end('The service has stopped, but code of the configuration module keeps the process running');
      end(`The stop took longer than ${longest / 1_000} s`);
    };
    setTimeout(overdue, longest).unref();
    resolve(reason);
  };
  const onSignal = (signal: 'SIGTERM' | 'SIGINT') => {
    if (failed.aborted) end(`Ended by ${signal} after the store had failed`);
    if (signalledAt === undefined) signalledAt = performance.now();
    else if (performance.now() - signalledAt > ECHO)
      end(`Ended by a second signal, ${signal}, during the stop`);
    begin(signal);
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  onNpmGone(process.env, () => begin('npm'));
  if (failed.aborted) begin('failed');
  failed.addEventListener('abort', () => begin('failed'), { once: true });
  stopRequested.addEventListener('abort', () => begin('asked'), { once: true });
  return promise;
}

/** Interval between two checks of the parent process, in milliseconds. */
const INTERVAL = 250;

/** A script that leaves a command in the background: its shell is expected to end before the command. */
const BACKGROUND = /(?<![&>])&(?![&>])|\b(?:nohup|setsid)\b/;

/**
 * Calls a listener once when the process that ran an npm script's command has ended; does nothing outside
 * npm. npm sends SIGTERM to the shell between the two, and a shell such as dash ends without stopping its
 * child.
 */
function onNpmGone(env: NodeJS.ProcessEnv, listener: () => void): void {
  const { npm_lifecycle_script: script } = env;
  if (script === undefined || BACKGROUND.test(script)) return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    listener();
  }, INTERVAL).unref();
}

/** Validates the parts of a configuration module that the doors read themselves. */
const checkModule: ModuleCheck = (code, name, resolve, problems, options) => {
  readWebhookSettings(code, name, resolve, problems);
  checkSchema(code, name, resolve, problems, options);
  const { settings, broken } = options;
  const isKnown = (['api.readScope', 'api.writeScope', 'api.scopes'] as const).every(
    (key) => !broken.has(key),
  );
  const scopes = isKnown ? knownScopes(settingsOf(settings, 'api')) : undefined;
  readApiTokens(code.apiTokens, { path: `${name}: api.tokens`, resolve, scopes }, problems);
};

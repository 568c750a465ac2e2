import { networkInterfaces } from 'node:os';
import { readApiTokens } from '../access/open-policy.ts';
import { knownScopes } from '../config/options/access.ts';
import { type DoorName, settingsOf } from '../config/options/options.ts';
import { socketPathOf } from '../core/addresses.ts';
import { describeError } from '../core/errors.ts';
import { readPackageInfo } from '../core/package-root.ts';
import { type Paint, paintedLines, paintFor, plainly, printableLines } from '../core/text.ts';
import { PRE_STOP_DELAY } from '../telemetry/health.ts';
import { terminalLog } from '../telemetry/log.ts';
import { readWebhookSettings } from '../webhook/webhook.ts';
import { consoleAddress, doorAddresses } from './console.ts';
import { closedInConsole, exposedDoors, securedBy, securityAdvice } from './door-security.ts';
import { checkSchema } from './doors.ts';
import { type Config, loadConfig, type ModuleCheck } from './load-config.ts';
import { createService, describeUnfinished, reportUnfinished, type Service } from './service.ts';

/** Time after the pre-stop delay at which a stop is forced, in milliseconds. */
const FORCED_EXIT = 10_000;

/** A second signal this soon, in milliseconds, counts as the first: npm forwards a terminal's signal. */
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
    const longest = (config.settings['shutdown.preStopDelay'] ?? PRE_STOP_DELAY.max) + FORCED_EXIT;
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
  readWebhookSettings(code, name, resolve, problems, options);
  checkSchema(code, name, resolve, problems, options);
  const { settings, broken } = options;
  const isKnown = (['api.readScope', 'api.writeScope', 'api.scopes'] as const).every(
    (key) => !broken.has(key),
  );
  const scopes = isKnown ? knownScopes(settingsOf(settings, 'api')) : undefined;
  readApiTokens(code.apiTokens, { path: `${name}: api.tokens`, resolve, scopes }, problems);
};

type Urls = Readonly<Partial<Record<DoorName, string>>>;

const TITLES: Readonly<Record<DoorName, string>> = {
  graphql: 'GraphQL',
  rest: 'REST',
  management: 'Management',
  webhook: 'Webhook',
  portal: 'Portal',
};

/** A command that shows the service at work, for the first door that answers without credentials. */
export function commandToTry(addresses: ReadonlyMap<DoorName, string>): string {
  const overTcp = [...addresses].filter(([, address]) => !isSocket(address));
  const { rest, graphql, webhook, management } = Object.fromEntries(overTcp) as Urls;
  if (rest !== undefined) return `curl ${rest}`;
  if (graphql !== undefined) return `curl '${graphql}?query=%7Bhello%7D'`;
  if (management !== undefined) return `curl ${new URL('/livez', management)}`;
  if (webhook !== undefined) return `curl -d '{"event":"new_commit","data":{}}' ${webhook}`;
  const [[door, address] = ['rest', '']] = addresses;
  return `curl --unix-socket ${socketPathOf(address)} http://localhost${SOCKET_PATHS[door as DoorName]}`;
}

function isSocket(address: string): boolean {
  return socketPathOf(address) !== undefined;
}

/** For each door, a path that answers without credentials. */
const SOCKET_PATHS: Readonly<Record<DoorName, string>> = {
  graphql: '/',
  rest: '/users',
  management: '/livez',
  webhook: '/',
  portal: '/',
};

/** Appearance of the banner. */
interface BannerLook {
  readonly paint?: Paint;
  /** The address of this machine for other machines, shown if the doors listen on all interfaces. */
  readonly network?: string | undefined;
  /** The address of the console, if a door serves it. */
  readonly console?: string | undefined;
  /** What the console hides, and how to show it. */
  readonly closed?: string | undefined;
}

/** The text that the start prints once all doors listen. `startedIn` is in milliseconds. */
export function banner(
  version: string,
  startedIn: number,
  listening: ReadonlyMap<DoorName, string>,
  { paint = plainly, network, console, closed }: BannerLook = {},
): string {
  const addresses = new Map([...listening].map(([door, address]) => [door, openable(address)]));
  const isOpenToAll = [...listening].some(([door, address]) => addresses.get(door) !== address);
  const lines = [...addresses].map(
    ([door, address]) => `  ${TITLES[door].padEnd(11)}${paint('cyan', address)}`,
  );
  if (console !== undefined) lines.push(`  ${'Console'.padEnd(11)}${paint('cyan', openable(console))}`);
  if (isOpenToAll && network !== undefined)
    lines.push(`  ${'Network'.padEnd(11)}the same ports at ${network}`);
  if (console !== undefined && closed !== undefined) lines.push('', `  ${closed}`);
  return [
    `${paint('bold', `Portico ${version} is ready`)} (${Math.round(startedIn)} ms)`,
    '',
    ...lines,
    '',
    `  Try:       ${commandToTry(addresses)}`,
    '  Stop:      Ctrl+C',
    '',
  ].join('\n');
}

/** An address that a browser can open: it cannot connect to "all interfaces". */
function openable(address: string): string {
  return address.replace(/^(https?:\/\/)(?:0\.0\.0\.0|\[::\])(?=:)/, '$1localhost');
}

/** The first external IPv4 address of this machine; undefined without a network, or if a sandbox hides it. */
function networkAddress(): string | undefined {
  try {
    const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address;
  } catch {
    return undefined;
  }
}

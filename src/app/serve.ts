import { type Config, loadConfig } from '../config/load.ts';
import { MAX_LINGER } from '../observability/health/readiness.ts';
import { readWebhookSettings } from '../webhook/settings.ts';
import { banner, doorAddresses } from './banner.ts';
import { exposedDoors, securityAdvice } from './exposure-warning.ts';
import { readPackageInfo } from './package-info.ts';
import { createService, type Service } from './service.ts';

/** A stop that takes longer than its own deadlines is ended, this many milliseconds after the linger. */
const FORCED_EXIT = 10_000;

/**
 * Runs the service until it receives a signal or fails; resolves to the exit code.
 * Fails with ConfigError, DatabaseOpenError or ListenError, with nothing left open.
 */
export async function serve(argv: readonly string[]): Promise<number> {
  const config = await loadConfig({
    argv,
    env: process.env,
    cwd: process.cwd(),
    check: readWebhookSettings,
  });
  await using service = await createService(config);
  const stopped = stopReason(service, config);

  const addresses = doorAddresses(await service.listen(), config);
  const { version } = readPackageInfo();
  // Standard output belongs to the log.
  process.stderr.write(`\n${banner(version, performance.now(), addresses)}\n`);
  service.log.info({ version, doors: Object.fromEntries(addresses) }, 'ready');
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
    service.log.info(reason === 'asked' ? {} : { signal: reason }, 'stopping');
  }
  await service.stop();
  return reason === 'failed' ? 1 : 0;
}

/** Why the service stops: a signal, its own failure, or a request to the management door. */
type StopReason = NodeJS.Signals | 'failed' | 'asked';

/** Resolves when the process is asked to stop or has to; a second signal ends it at once. */
function stopReason({ failed, stopRequested }: Service, config: Config): Promise<StopReason> {
  const { promise, resolve } = Promise.withResolvers<StopReason>();
  let stopping = false;
  let signalled = false;
  const begin = (reason: StopReason) => {
    if (stopping) return;
    stopping = true;
    const linger = config.settings['shutdown.linger'] ?? MAX_LINGER;
    setTimeout(() => process.exit(1), linger + FORCED_EXIT).unref();
    resolve(reason);
  };
  const onSignal = (signal: NodeJS.Signals) => {
    if (signalled || failed.aborted) process.exit(1);
    signalled = true;
    begin(signal);
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  if (failed.aborted) begin('failed');
  failed.addEventListener('abort', () => begin('failed'), { once: true });
  stopRequested.addEventListener('abort', () => begin('asked'), { once: true });
  return promise;
}

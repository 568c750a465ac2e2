import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type PorticoProcess, startPortico } from '../../support/portico-process.ts';
import { type Random, seededRandom } from '../../support/random.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';
import { SendingLedger } from './ledger.ts';
import { runSendingLoad } from './load.ts';
import { ProofReceiver } from './receiver.ts';

interface SendingOptions {
  readonly seed: number;
  /** How many processes share the database. */
  readonly processes: number;
  /** Undefined: a file in the folder of the process. */
  readonly databaseUrl: string | undefined;
  /** The program's script, when it is not the one of this folder. */
  readonly main?: string;
}

interface SendingResult {
  readonly acknowledged: number;
  readonly endpoints: number;
  /** Pairs of an event and an endpoint that certainly had to get it. */
  readonly certain: number;
  readonly arrivals: number;
}

/** Processes that send events while endpoints change, under load. */
export interface Sending extends AsyncDisposable {
  readonly random: Random;
  /** Resolves in the moment in which a client learns that an event is stored; rejects when a reply was wrong. */
  acknowledged(): Promise<void>;
  /** Ends a process as a crash does, and starts another one in its place. */
  replace(place: number): Promise<void>;
  /**
   * Ends the load, waits for up to `within` milliseconds of pauses until events arrive, and compares what was acknowledged
   * with what arrived. Default: 120,000.
   */
  finish(within?: number): Promise<SendingResult>;
}

export async function startSending(options: SendingOptions): Promise<Sending> {
  const { seed, processes, databaseUrl, main } = options;
  const random = seededRandom(seed);
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder());
  const receiver = cleanup.use(new ProofReceiver(seededRandom(seed + 1)));
  const url = await receiver.listen();
  const ledger = new SendingLedger();
  const running: (PorticoProcess | undefined)[] = [];
  const started = cleanup.use(new AsyncDisposableStack());
  let turn = 0;
  let onNext = () => {};

  async function begin(place: number): Promise<void> {
    const portico = startPortico({
      cwd: folder.path,
      env: {
        INTERFACES: 'rest,webhook',
        CONFIG: join(import.meta.dirname, 'config.ts'),
        ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
      },
      ...(main !== undefined && { main }),
    });
    started.use(portico);
    await portico.ready();
    running[place] = portico;
  }

  for (let place = 0; place < processes; place++) await begin(place);
  const stop = new AbortController();
  const working = runSendingLoad({
    next: () => {
      const some = running.filter((each) => each !== undefined);
      return some[turn++ % some.length];
    },
    ledger,
    random,
    receiver: url,
    signal: stop.signal,
    onAcknowledged: () => onNext(),
  });
  // `acknowledged` and `finish` tell of it.
  working.catch(() => {});
  cleanup.defer(async () => {
    stop.abort();
    await working.catch(() => {});
  });
  const rest = cleanup.move();
  return {
    random,
    acknowledged() {
      const { promise, resolve } = Promise.withResolvers<void>();
      onNext = resolve;
      return Promise.race([promise, working]);
    },
    async replace(place) {
      const portico = running[place];
      running[place] = undefined;
      await portico?.[Symbol.asyncDispose]();
      await begin(place);
    },
    async finish(within = 120_000) {
      stop.abort();
      await working;
      await arrived(ledger, receiver, within);
      const certain = ledger.check(receiver.at);
      if (receiver.differing.length > 0)
        throw new Error(`came in two forms: ${receiver.differing.join(' ')}`);
      return {
        acknowledged: ledger.acknowledged.length,
        endpoints: ledger.endpoints.length,
        certain,
        arrivals: receiver.total,
      };
    },
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

interface SendingRound extends SendingOptions {
  readonly kills: number;
  /** How long events may take to arrive at the end, in milliseconds of pauses. */
  readonly within?: number;
}

/** A process stays for at most so long before a kill, in milliseconds. */
const LIFE = 1_500;
/** How long the load goes on after the last kill. */
const REST = 1_000;

/** Kills processes that send events while endpoints change, and compares what was acknowledged with what arrived. */
export async function sendingRound({ kills, within, ...options }: SendingRound): Promise<SendingResult> {
  await using sending = await startSending(options);
  const { random } = sending;
  for (let done = 0; done < kills; done++) {
    await delay(random.below(LIFE));
    // Half of them in the moment in which a client learns that an event is stored.
    if (random.chance(0.5)) await sending.acknowledged();
    await sending.replace(random.below(options.processes));
  }
  await delay(REST);
  // Awaited before the processes are ended.
  return await sending.finish(within);
}

/** Waits until every event that is due has arrived, and for those that should not come; `check` tells what is missing. */
async function arrived(ledger: SendingLedger, receiver: ProofReceiver, within: number): Promise<void> {
  const pairs = ledger.acknowledged.flatMap((event) =>
    ledger.due(event).map(({ path }) => [path, event.token]),
  );
  const isThere = ([path = '', token = '']: readonly string[]) =>
    Number.isFinite(receiver.at.get(path)?.get(token)?.acceptedAt ?? Number.POSITIVE_INFINITY);
  await waitFor('all events', () => pairs.every(isThere), within).catch(() => {});
  for (let before = -1; before !== receiver.total; ) {
    before = receiver.total;
    await delay(1_000);
  }
}

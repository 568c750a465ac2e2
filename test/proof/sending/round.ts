import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type PorticoProcess, startPortico } from '../../support/portico-process.ts';
import { seededRandom } from '../../support/random.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { waitFor } from '../../support/wait-for.ts';
import { SendingLedger } from './ledger.ts';
import { runSendingLoad } from './load.ts';
import { ProofReceiver } from './receiver.ts';

interface SendingRound {
  readonly seed: number;
  readonly kills: number;
  /** How many processes share the database. */
  readonly processes: number;
  /** Undefined: a file in the folder of the process. */
  readonly databaseUrl: string | undefined;
  /** The program's script, when it is not the one of this folder. */
  readonly main?: string;
  /** How long events may take to arrive at the end, in milliseconds of pauses. */
  readonly within?: number;
}

interface SendingResult {
  readonly acknowledged: number;
  readonly endpoints: number;
  /** Pairs of an event and an endpoint that certainly had to get it. */
  readonly certain: number;
  readonly arrivals: number;
}

/** A process stays for at most so long before a kill, in milliseconds. */
const LIFE = 1_500;
/** How long the load goes on after the last kill. */
const REST = 1_000;

/** Kills processes that send events while endpoints change, and compares what was acknowledged with what arrived. */
export async function sendingRound(round: SendingRound): Promise<SendingResult> {
  const { seed, kills, processes, databaseUrl, main, within = 120_000 } = round;
  const random = seededRandom(seed);
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await temporaryFolder());
  const receiver = cleanup.use(new ProofReceiver(seededRandom(seed + 1)));
  const url = await receiver.listen();
  const ledger = new SendingLedger();
  const running: (PorticoProcess | undefined)[] = [];
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
    cleanup.use(portico);
    await portico.ready();
    running[place] = portico;
  }
  async function kill(place: number): Promise<void> {
    const portico = running[place];
    running[place] = undefined;
    await portico?.[Symbol.asyncDispose]();
  }

  for (let place = 0; place < processes; place++) await begin(place);
  const stop = new AbortController();
  const load = runSendingLoad({
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
  const work = (async () => {
    for (let done = 0; done < kills; done++) {
      await delay(random.below(LIFE));
      // Half of them in the moment in which a client learns that an event is stored.
      if (random.chance(0.5)) {
        const { promise, resolve } = Promise.withResolvers<void>();
        onNext = resolve;
        await promise;
      }
      const place = random.below(processes);
      await kill(place);
      await begin(place);
    }
    await delay(REST);
  })();
  try {
    await Promise.race([work, load]);
  } finally {
    stop.abort();
    await Promise.allSettled([work, load]);
  }
  await Promise.all([work, load]);
  await arrived(ledger, receiver, within);
  const certain = ledger.check(receiver.at);
  if (receiver.differing.length > 0) throw new Error(`came in two forms: ${receiver.differing.join(' ')}`);
  return {
    acknowledged: ledger.acknowledged.length,
    endpoints: ledger.endpoints.length,
    certain,
    arrivals: receiver.total,
  };
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

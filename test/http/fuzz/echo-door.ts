import { setImmediate as tick } from 'node:timers/promises';
import {
  addEndpoint,
  createListener,
  type Endpoint,
  HttpProblem,
  type Reply,
  type RequestContext,
  readRawBodies,
} from '@portico/transport';
import type { FastifyInstance } from 'fastify';
import { FastRequestContext } from '../../../packages/transport/fast-path/fast-context.ts';
import { openLog } from '../../../src/telemetry/log.ts';
import { captureLog, type LogCapture } from '../../support/log-capture.ts';
import { idsIn } from './corpus.ts';
import type { FuzzedDoor } from './fuzz.ts';
import { watchPort } from './watch-port.ts';

/** A door that answers what it was asked, and notes what has reached its endpoints. */
export interface EchoDoor extends FuzzedDoor, AsyncDisposable {
  readonly log: LogCapture;
  /** How many requests the fast path has brought to endpoints. */
  readonly fast: number;
}

const LARGEST_BODY = 64 * 1024;
const LARGE = 'x'.repeat(40 * 1024);

function textOf({ method, param, contentType, headers, body }: RequestContext): string {
  const fields = Object.entries(headers).filter(([, value]) => value !== undefined);
  fields.sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify({ method, param, contentType, body: body.toString('latin1'), fields });
}

const reply = (body: Reply['body'], headers?: Reply['headers']): Reply => ({
  status: 200,
  type: 'text/plain',
  body,
  headers,
});

/** What holds no id, or a changed one, shows in the replies alone. */
function note(arrivals: Map<string, string[]>, text: string): void {
  const prefix = idsIn(text)[0]?.slice(0, -2);
  if (prefix === undefined) return;
  const of = arrivals.get(prefix) ?? [];
  arrivals.set(prefix, of);
  of.push(text);
}

/** Text in pieces, one of them empty, one after a while. */
async function* pieces(text: string): AsyncGenerator<string | Buffer> {
  yield text.slice(0, 3);
  yield '';
  for (let ticks = 0; ticks < 3; ticks++) await tick();
  yield Buffer.from(text.slice(3));
  yield LARGE;
}

/** Opens it on a free port; its routes are those that the corpus asks for. */
export async function openEchoDoor(fastPath: boolean): Promise<EchoDoor> {
  const log = captureLog();
  const listener = createListener({
    door: 'echo',
    host: '127.0.0.1',
    port: 0,
    portHint: '',
    log: await openLog({ level: 'warn', stream: log.stream }),
    errors: { contentType: 'text/plain', body: ({ code }) => code },
    fastPath,
  });
  const arrivals = new Map<string, string[]>();
  let fast = 0;
  const endpoint = (
    answer: (text: string) => ReturnType<Endpoint['handle']>,
    bodyLimit: number,
  ): Endpoint => ({
    bodyLimit,
    handle(exchange) {
      const text = textOf(exchange);
      if (exchange instanceof FastRequestContext) fast++;
      note(arrivals, text);
      return answer(text);
    },
  });
  const later = async (text: string) => {
    for (let ticks = 0; ticks < 3; ticks++) await tick();
    return reply(text);
  };
  listener.watchHooks();
  listener.app.register((room: FastifyInstance, _options, done) => {
    readRawBodies(room);
    const get = (path: string, answer: (text: string) => ReturnType<Endpoint['handle']>) =>
      addEndpoint(room, 'GET', `/${path}/:param`, endpoint(answer, 0));
    get('get', (text) => reply(text));
    get('later', later);
    get('stream', (text) => reply(pieces(text)));
    get('large', (text) => reply(text + LARGE));
    get('none', () => ({ status: 204, type: '', body: '' }));
    get('failure', () => {
      throw new Error('failed');
    });
    get('close', (text) => reply(text, { connection: 'close' }));
    addEndpoint(
      room,
      'POST',
      '/echo',
      endpoint((text) => reply(text), LARGEST_BODY),
    );
    addEndpoint(room, 'POST', '/later', endpoint(later, LARGEST_BODY));
    addEndpoint(
      room,
      'POST',
      '/small',
      endpoint((text) => reply(text), 20),
    );
    addEndpoint(room, 'POST', '/refused', {
      ...endpoint((text) => reply(text), LARGEST_BODY),
      authorize() {
        throw new HttpProblem(401, 'UNAUTHORIZED', 'no');
      },
    });
    done();
  });
  await listener.listen();
  return {
    ...watchPort(listener.app.server),
    silence: 0,
    log,
    arrivals(prefix) {
      const taken = arrivals.get(prefix) ?? [];
      arrivals.delete(prefix);
      return taken;
    },
    get fast() {
      return fast;
    },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

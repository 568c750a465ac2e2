import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { clock } from './clock.ts';
import type { Conversation, Wait } from './conversation.ts';

/** How a conversation went. */
export interface Played {
  /** All that came back, each byte a character. */
  readonly text: string;
  /** Who closed the connection first; nobody when the door keeps it open behind its client. */
  readonly closedBy: 'door' | 'client' | 'nobody';
  /** The client wrote to a connection that the door had closed, which takes away what it has not read. */
  readonly isReset: boolean;
}

/** A door in this process. */
export interface Target {
  readonly port: number;
  /** Whether the door has accepted the connection that comes from a port. */
  hasAccepted(port: number): boolean;
  /** How long nothing comes once all replies are there, in milliseconds: 0 for a door that needs ticks alone. */
  readonly silence: number;
}

/** Ticks without a byte after which no reply is to come: all that a door does for one takes fewer. */
const SILENCE = 12;
/** In milliseconds. */
const MAX_CLOSE = 10_000;

const EARLIER = 'GET /get/earlier HTTP/1.1\r\nHost: x\r\n\r\n';

/** Plays one conversation with a door. Ticks are its clock, since client and door share an event loop. */
export async function play({ earlier, steps, ending }: Conversation, door: Target): Promise<Played> {
  const socket = connect({ host: '127.0.0.1', port: door.port, allowHalfOpen: true });
  socket.setNoDelay(true);
  let text = '';
  let moved = { tick: 0, at: 0 };
  const move = () => {
    moved = { tick: clock.now, at: performance.now() };
  };
  let isReset = false;
  socket.setEncoding('latin1').on('data', (piece: string) => {
    text += piece;
    move();
  });
  socket.on('error', () => {
    isReset = true;
  });
  const closed = Promise.withResolvers<boolean>();
  socket.on('close', () => closed.resolve(true));
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
  const { localPort = 0 } = socket;
  while (!socket.destroyed && !door.hasAccepted(localPort)) await clock.ticks(1);

  const silence = async () => {
    for (let left = SILENCE; left > 0; left = moved.tick + SILENCE - clock.now) await clock.ticks(left);
    const rest = moved.at + door.silence - performance.now();
    if (rest > 0 && !socket.destroyed) {
      await delay(rest);
      await silence();
    }
  };
  const write = async (bytes: Buffer | string, wait: Wait) => {
    socket.write(bytes);
    move();
    if (wait === 'tick') await clock.ticks(1);
    else if (wait === 'replies') await silence();
    else if (wait !== 'nothing') await delay(wait);
  };
  for (let i = 0; i < earlier; i++) await write(EARLIER, 'replies');
  for (const [i, { bytes, wait }] of steps.entries()) {
    if (!socket.writable) break;
    await write(bytes, i < steps.length - 1 || ending === 'half-close' ? wait : 'nothing');
  }
  if (ending === 'half-close') await silence();
  const isFirst = !socket.readableEnded && !socket.destroyed;
  if (ending === 'close') socket.destroy();
  else if (ending === 'reset') socket.resetAndDestroy();
  else socket.end();
  const timer = setTimeout(() => closed.resolve(false), MAX_CLOSE);
  const isClosed = await closed.promise;
  clearTimeout(timer);
  socket.destroy();
  return { text, closedBy: !isClosed ? 'nobody' : isFirst ? 'client' : 'door', isReset };
}

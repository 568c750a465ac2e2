import type { Conversation } from './conversation.ts';
import { idsIn, idsOf } from './corpus.ts';
import type { Played } from './play.ts';
import { type Reply, readReplies } from './replies.ts';

/** What one door did in a conversation. */
export interface Outcome extends Played {
  /** What its endpoints saw. */
  readonly arrivals: readonly string[];
}

/** What is wrong with two outcomes of one conversation, or undefined. */
export function difference(said: Conversation, fast: Outcome, fastify: Outcome): string | undefined {
  const both = [fast, fastify];
  if (both.some(({ text }) => foreignIds(said, text))) return 'a reply has the id of another request';
  if (both.some(({ closedBy }) => closedBy === 'nobody') && !hangs(said, both))
    return 'a connection stays open';
  const { ending } = said;
  // How much a door reads of a client that is gone, and how much of its replies arrives, is a matter of the moment.
  const isCut = ending === 'close' || ending === 'reset' || both.some(({ isReset }) => isReset);
  const [read, other] = [readAll(fast), readAll(fastify)];
  if (!isCut && read.rest + other.rest !== '') return 'there are bytes that are no reply';
  if (!sameReplies(read, other, isCut)) return 'the replies differ';
  const isClosing = isLast(read.replies.at(-1)) || isLast(other.replies.at(-1));
  if (!sameArrivals(fast, fastify, isCut, isClosing)) return 'the endpoints saw different requests';
  // Such a connection is closed by the door, if its client does not do that while the reply is still under way: for the
  // rest of a body the fast path waits a while.
  if (isCut || isClosing || ending !== 'half-close' || fast.closedBy === fastify.closedBy) return undefined;
  return 'the connection was closed by different sides';
}

interface Answer {
  readonly replies: readonly Reply[];
  readonly rest: string;
  readonly closedBy: Outcome['closedBy'];
}

const readAll = ({ text, closedBy }: Outcome): Answer => ({ ...readReplies(alike(text)), closedBy });

/** What is of this reply alone is taken out, its place is kept. */
function alike(text: string): string {
  return (
    text
      .replace(/(?<=\r\nx-request-id: )[0-9a-f]{8}-[0-9a-z]+(?=\r\n)/g, 'ID')
      .replace(/(?<=\r\nx-delivery-id: )[0-9a-f-]{36}(?=\r\n)/g, 'DELIVERY')
      .replace(/(?<=\r\nDate: )[^\r]+ GMT(?=\r\n)/g, 'DATE')
      // Each twin has users of its own.
      .replace(/(?<=\r\netag: )[^\r]+/g, 'TAG')
      .replace(/(?<="etag":"\\")\d+/g, (digits) => 'N'.repeat(digits.length))
      .replace(/(?<=\r\n)last-modified: [^\r]+\r\n/g, '')
      .replace(/(?<=\r\nlocation: \/users\/)\d+(?=\r\n)/g, 'NUMBER')
  );
}

/** Node's parser reports no error behind an Upgrade that is ignored; the limit on a request's time ends those. */
function hangs(said: Conversation, both: readonly Outcome[]): boolean {
  return both.every(({ closedBy }) => closedBy === 'nobody') && /upgrade/i.test(bytesOf(said));
}

const isLast = (reply?: Reply) => /\r\nconnection: close\r\n/i.test(reply?.head ?? '');

const isRefusal = (reply?: Reply) => isLast(reply) && /^HTTP\/1\.1 4/.test(reply?.head ?? '');

const joined = (replies: readonly Reply[]) => replies.map(({ head, body }) => head + body).join('');

/** Whether two doors have answered the same, apart from what pieces and moments decide. */
function sameReplies(fast: Answer, fastify: Answer, isCut: boolean): boolean {
  const [text, other] = [joined(fast.replies), joined(fastify.replies)];
  if (text === other || (isCut && (text.startsWith(other) || other.startsWith(text)))) return true;
  const [before, otherBefore] = [withoutRefusal(fast), withoutRefusal(fastify)];
  if (tookPlace(fast, before, otherBefore) || tookPlace(fastify, otherBefore, before)) return true;
  return joined(before) === joined(otherBefore) && mayLack(fast, before) && mayLack(fastify, otherBefore);
}

function withoutRefusal({ replies }: Answer): readonly Reply[] {
  return isRefusal(replies.at(-1)) ? replies.slice(0, -1) : replies;
}

/**
 * Whether the parser's refusal of a body took the place of the reply to its request. The other door had sent that
 * reply before it read the broken part, which depends on the moment.
 */
function tookPlace({ replies }: Answer, before: readonly Reply[], other: readonly Reply[]): boolean {
  const refusal = replies[before.length];
  if (refusal === undefined || !/\r\nx-error-code: HPE_/.test(refusal.head)) return false;
  return other.length === before.length + 1 && joined(other.slice(0, -1)) === joined(before);
}

/**
 * Whether the refusal that ends a connection may be another one than the other door's: of a body that is too large and
 * broken its pieces decide which is seen first. Or whether it may be missing: Node closes the connection behind the last
 * reply to a client that has closed its half.
 */
function mayLack({ replies, closedBy }: Answer, before: readonly Reply[]): boolean {
  return before.length < replies.length || closedBy === 'client';
}

/**
 * Whether the endpoints of both saw the same requests. Those that are pipelined run at the same time, so that only their
 * replies have an order; some may have begun before it was known that a reply in front of them closes the connection.
 */
function sameArrivals(fast: Outcome, fastify: Outcome, isCut: boolean, isClosing: boolean): boolean {
  const [more, fewer] = [without(fast.arrivals, fastify.arrivals), without(fastify.arrivals, fast.arrivals)];
  if (isCut) return more.length === 0 || fewer.length === 0;
  const unseen = [...more, ...fewer];
  return isClosing
    ? unseen.every((each) => !fast.text.includes(each) && !fastify.text.includes(each))
    : unseen.length === 0;
}

/** What is left of some arrivals when others are taken away, each once. */
function without(arrivals: readonly string[], others: readonly string[]): readonly string[] {
  const left = [...others];
  return arrivals.filter((each) => {
    const at = left.indexOf(each);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}

/** Whether there is an id in the replies that the client has not sent. */
export function foreignIds(said: Conversation, text: string): boolean {
  const { prefix } = idsOf(said.number);
  const strange = idsIn(text).filter((id) => !id.startsWith(prefix));
  if (strange.length === 0) return false;
  // Changed bytes may look like an id.
  const sent = bytesOf(said).toLowerCase();
  return strange.some((id) => !sent.includes(id));
}

function bytesOf({ steps }: Conversation): string {
  return Buffer.concat(steps.map(({ bytes }) => bytes)).toString('latin1');
}

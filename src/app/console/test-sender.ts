import { randomUUID } from 'node:crypto';
import { describeError } from '../../core/describe-error.ts';
import { createSender, type Receiver } from '../../http/client/sender.ts';
import { HttpProblem } from '../../http/problem.ts';
import type { TestAnswer, TestSender } from '../../management/console/console-view.ts';
import { sentName } from '../../webhook/event-names.ts';
import type { Signer } from '../../webhook/schemes/scheme.ts';
import { UnsignableError } from '../../webhook/schemes/scheme-error.ts';
import { token } from '../../webhook/schemes/token.ts';
import { buildBody } from '../../webhook/sources/build-body.ts';
import { defaultLayout } from '../../webhook/sources/defaults.ts';
import { signDelivery } from '../../webhook/sources/sign-delivery.ts';
import type { SourceLayout, SourceSettings } from '../../webhook/sources/source.ts';

/** A test delivery has this long for its answer, in milliseconds. */
const TIMEOUT = 10_000;
/** Of the answer so much is shown, in characters. */
const MAX_ANSWER = 2_000;

export interface TestSenderOptions {
  readonly sources: readonly SourceSettings[];
  /** The secrets that /webhook accepts now. */
  secrets(): readonly string[];
  /** The webhook door at one of its paths; undefined before it listens. */
  receiver(path: string): Receiver | undefined;
}

/** Sends test deliveries to the service's own webhook door, each signed as its sender would. */
export function createTestSender({ sources, secrets, receiver }: TestSenderOptions): TestSender {
  function sign(source: SourceSettings | undefined): {
    readonly layout: SourceLayout;
    readonly sign: Signer;
  } {
    if (source !== undefined) return { layout: source, sign: source.signature.signer(source.secrets) };
    const accepted = secrets();
    const signer = accepted.length === 0 ? () => ({}) : token('x-webhook-token').signer(accepted);
    return { layout: defaultLayout('token'), sign: signer };
  }

  function signed(name: string, called: string, data: unknown) {
    const source = sources.find((each) => each.name === name);
    if (source === undefined && name !== '') throw wrong('There is no such source');
    const { layout, sign: signer } = sign(source);
    const event = sentName(layout, called);
    const id = randomUUID();
    try {
      const body = buildBody(layout, { event, data, id });
      const timestamp = Math.floor(Date.now() / 1_000);
      return { body, headers: signDelivery(layout, signer, { id, event, body, timestamp }) };
    } catch (error) {
      throw error instanceof UnsignableError ? wrong(sentence(error.message)) : error;
    }
  }

  return {
    sources: () => [
      { name: '', scheme: secrets().length === 0 ? 'none' : 'token', event: 'new_commit' },
      ...sources.map(({ name, scheme, events }) => {
        return { name, scheme, event: [...events.keys()][0] ?? 'new_commit' };
      }),
    ],
    async send(source, event, data): Promise<TestAnswer> {
      const { body, headers } = signed(source, event, data);
      const door = receiver(source === '' ? '/webhook' : `/webhook/${encodeURIComponent(source)}`);
      if (door === undefined) throw wrong('The webhook door does not listen');
      using sender = createSender(door);
      try {
        const reply = await sender.post(headers, body, AbortSignal.timeout(TIMEOUT));
        return { ...reply, body: reply.body.slice(0, MAX_ANSWER) };
      } catch (cause) {
        throw new HttpProblem(502, 'TEST_DELIVERY_UNSENT', `No answer: ${describeError(cause)}`, { cause });
      }
    },
  };
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function wrong(message: string): HttpProblem {
  return new HttpProblem(400, 'TEST_DELIVERY', message);
}

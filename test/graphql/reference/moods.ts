import { GraphQLError, type GraphQLResolveInfo, responsePathAsArray } from 'graphql';
import type { Schedule } from './schedule.ts';

/** What resolvers of the rich schema get as their context. */
export interface Context {
  readonly schedule: Schedule;
  /** What was called, in its order. */
  readonly done: string[];
}

/** A value that a type takes, and one that it does not. */
export interface Values {
  readonly good: unknown;
  readonly wrong: unknown;
}

export type Later = <T>(value: () => T) => Promise<T>;

/** `soon` takes a few microtasks, `later` a turn of the event loop. */
type Mood = (values: Values, later: Later, soon: Later) => unknown;

const fails = (error: unknown): never => {
  throw error;
};
const hidden = () => new Error('a secret of the program');
const shown = () => new GraphQLError('shown on purpose');
const detailed = () =>
  new GraphQLError('shown with details', { extensions: { code: 'TEAPOT', list: [1, 2] } });
const caused = () => new GraphQLError('shown with a cause', { originalError: hidden() });
// biome-ignore lint/suspicious/noThenProperty: a promise of another make.
const thenable = (promise: Promise<unknown>) => ({ then: promise.then.bind(promise) });

/** Everything that a resolver may do. */
export const moods = {
  good: ({ good }) => good,
  none: () => null,
  absent: () => undefined,
  wrong: ({ wrong }) => wrong,
  throws: () => fails(hidden()),
  throwsShown: () => fails(shown()),
  throwsDetailed: () => fails(detailed()),
  throwsCaused: () => fails(caused()),
  throwsText: () => fails('only a text'),
  throwsNothing: () => fails(undefined),
  returnsError: () => hidden(),
  returnsShown: () => shown(),
  later: ({ good }, later) => later(() => good),
  laterNone: (_values, later) => later(() => null),
  laterWrong: ({ wrong }, later) => later(() => wrong),
  laterThrows: (_values, later) => later(() => fails(hidden())),
  laterDetailed: (_values, later) => later(() => fails(detailed())),
  laterError: (_values, later) => later(() => hidden()),
  thenable: ({ good }, later) => thenable(later(() => good)),
  soon: ({ good }, _later, soon) => soon(() => good),
  soonNone: (_values, _later, soon) => soon(() => null),
  soonWrong: ({ wrong }, _later, soon) => soon(() => wrong),
  soonThrows: (_values, _later, soon) => soon(() => fails(hidden())),
  soonDetailed: (_values, _later, soon) => soon(() => fails(detailed())),
  soonThenable: ({ good }, _later, soon) => thenable(soon(() => good)),
} as const satisfies Readonly<Record<string, Mood>>;

/** What else a resolver of a list may do; the values are those of its items. */
export const listMoods = {
  empty: () => [],
  withNone: ({ good }) => [good, null, good],
  withWrong: ({ good, wrong }) => [good, wrong, good],
  wrongThenLater: ({ wrong }, later) => [wrong, later(() => fails(hidden()))],
  withErrors: ({ good }) => [hidden(), good, detailed()],
  withLater: ({ good }, later) => [later(() => good), good, later(() => null), thenable(later(() => good))],
  withLaterErrors: ({ good }, later) => [later(() => fails(hidden())), good, later(() => fails(shown()))],
  set: ({ good }) => new Set([good, null]),
  *iterated({ good }) {
    yield good;
    yield good;
  },
  *iteratedThrows({ good }) {
    yield good;
    throw hidden();
  },
  async *streamed({ good }, later) {
    await later(() => {});
    yield good;
    yield null;
    yield good;
  },
  async *streamedSlowly({ good }, later) {
    yield good;
    await later(() => {});
    yield good;
  },
  async *streamedThrows({ good }, later) {
    await later(() => {});
    yield good;
    throw detailed();
  },
  withSoon: ({ good }, _later, soon) => [
    soon(() => good),
    good,
    soon(() => null),
    thenable(soon(() => good)),
  ],
  withSoonErrors: ({ good, wrong }, _later, soon) => [
    soon(() => good),
    soon(() => fails(hidden())),
    wrong,
    soon(() => fails(shown())),
  ],
  failsOnce: ({ good }, _later, soon) =>
    failingOnce([soon(() => good), good, soon(() => fails(hidden()))], 1),
  failsAtFirst: ({ good }, _later, soon) => failingOnce([good, soon(() => fails(hidden())), good], 0),
  async *streamedSoon({ good, wrong }, _later, soon) {
    yield soon(() => good);
    yield good;
    await soon(() => {});
    yield wrong;
    yield soon(() => fails(shown()));
    yield good;
  },
  streamedBadly: ({ good }, _later, soon) => ({
    ...failingOnce([good, good], 1, soon),
    [Symbol.asyncIterator]() {
      return this;
    },
    // Nobody waits for an end that does not come.
    return: () => new Promise(() => {}),
  }),
  text: () => 'no list',
} as const satisfies Readonly<Record<string, Mood>>;

/** An iterator that throws once and goes on after that. */
function failingOnce(values: readonly unknown[], at: number, soon?: Later) {
  let index = -1;
  const next = () => {
    index += 1;
    if (index === at) fails(hidden());
    return { done: index >= values.length, value: values[index] };
  };
  return {
    [Symbol.iterator]() {
      return this;
    },
    next: soon === undefined ? next : () => soon(next),
  };
}

/** Gives the value of one field in its mood. */
export function inMood(
  mood: Mood,
  values: Values,
  { schedule, done }: Context,
  info: GraphQLResolveInfo,
): unknown {
  done.push(`asked for ${responsePathAsArray(info.path).join('.')}`);
  return mood(values, laterIn(schedule, info), soonIn(info));
}

/** Promises that take up to eight microtasks, each its own number. */
export function soonIn({ path }: GraphQLResolveInfo, kind = ''): Later {
  const place = `${responsePathAsArray(path).join('.')}${kind}`;
  let count = 0;
  return async (value) => {
    let seed = count++;
    for (const character of place) seed = (seed * 31 + character.charCodeAt(0)) % 9973;
    for (let left = seed % 9; left > 0; left--) await undefined;
    return value();
  };
}

/** Promises that are named after the field that they are made for. */
export function laterIn(schedule: Schedule, { path }: GraphQLResolveInfo, kind = ''): Later {
  let count = 0;
  const place = responsePathAsArray(path).join('.');
  return (value) => schedule.later(`${place}${kind}#${count++}`, value);
}

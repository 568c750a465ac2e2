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

type Mood = (values: Values, later: Later) => unknown;

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
  // All in one turn: in a pause between two items GraphQL.js would leave rejections of the first unhandled.
  async *streamed({ good }, later) {
    await later(() => {});
    yield good;
    yield null;
    yield good;
  },
  async *streamedThrows({ good }, later) {
    await later(() => {});
    yield good;
    throw detailed();
  },
  text: () => 'no list',
} as const satisfies Readonly<Record<string, Mood>>;

/** Gives the value of one field in its mood. */
export function inMood(mood: Mood, values: Values, { schedule }: Context, info: GraphQLResolveInfo): unknown {
  return mood(values, laterIn(schedule, info));
}

/** Promises that are named after the field that they are made for. */
export function laterIn(schedule: Schedule, { path }: GraphQLResolveInfo, kind = ''): Later {
  let count = 0;
  const place = responsePathAsArray(path).join('.');
  return (value) => schedule.later(`${place}${kind}#${count++}`, value);
}

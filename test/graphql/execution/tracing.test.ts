import assert from 'node:assert/strict';
import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import { afterEach, test } from 'node:test';
import { type ExecutionResult, execute, parse, subscribe } from 'graphql';
import { operationOf, raise, schemaOf, shown, ticks } from './compare.ts';

const NAMES = [
  'graphql:execute',
  'graphql:subscribe',
  'graphql:execute:variableCoercion',
  'graphql:execute:rootSelectionSet',
  'graphql:resolve',
];
const EVENTS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

type Message = Record<string, unknown>;
const unlisten: (() => void)[] = [];
afterEach(() => {
  for (const stop of unlisten.splice(0)) stop();
});

/** Notes what is published on channels. */
function listen(names: readonly string[]): string[] {
  const heard: string[] = [];
  for (const name of names) {
    const channel: TracingChannel<Message> = tracingChannel<Message>(name);
    for (const event of EVENTS) {
      const listener = (message: unknown) => heard.push(`${name} ${event} ${told(message as Message)}`);
      channel[event].subscribe(listener);
      unlisten.push(() => channel[event].unsubscribe(listener));
    }
  }
  return heard;
}

/** What a message tells; a result also without the order in which GraphQL.js makes its objects. */
function told(message: Message): string {
  const { schema, document, operation, result, error, args, ...rest } = message;
  return JSON.stringify({
    ...rest,
    args,
    keys: Object.keys(message).sort(),
    has: [schema, document, operation].map((part) => part !== undefined),
    ...('error' in message && { error: String(error) }),
    ...('result' in message && { result: textOf(result) }),
  });
}

function textOf(result: unknown): string {
  if (typeof result !== 'object' || result === null) return String(result);
  if (Symbol.asyncIterator in result) return 'a stream';
  if ('data' in result || 'errors' in result) return shown(result as ExecutionResult);
  return JSON.stringify('variableValues' in result ? result.variableValues : result, (key, value) =>
    key === 'sources' ? undefined : value,
  );
}

const schema = schemaOf(
  `type Query { text(by: Int = 1): String later: String own: Own list: [Own] fails: String failsLater: String! plain(id: ID): String }
   type Own { text: String deep: Own method: Int }
   type Mutation { text: String later: String own: Own }
   type Subscription { text: String fails: String }`,
  {
    Query: {
      fields: {
        text: () => 'text',
        later: () => ticks(2, () => 'later'),
        own: () => ({ text: 'own', deep: { text: ticks(1, () => 'deep') }, method: () => 3 }),
        list: () => [{ text: 'a' }, ticks(1, () => ({ text: 'b' }))],
        fails: () => raise('failed'),
        failsLater: () => ticks(3, () => raise('failed later')),
      },
    },
    Mutation: {
      fields: { text: () => 'text', later: () => ticks(2, () => 'later'), own: () => ({ text: 'own' }) },
    },
    Subscription: {
      subscribe: {
        async *text() {
          yield { text: 'one' };
          yield { text: 'two' };
        },
        fails: () => raise('cannot be opened'),
      },
    },
  },
);

const queries: readonly (readonly [query: string, variables?: Record<string, unknown>])[] = [
  ['{ text }'],
  ['{ text plain(id: "1") x: text(by: 3) own { text method deep { text } } list { text } }'],
  ['query Q($by: Int!) { text(by: $by) later }', { by: 3 }],
  ['query Q($by: Int!) { text(by: $by) later }', { by: 'x' }],
  ['{ fails text later }'],
  ['{ own { text } failsLater }'],
  ['{ text(by: "x") plain }'],
  ['mutation M { text later own { text } again: later }'],
];

for (const names of [NAMES, ...NAMES.map((name) => [name])]) {
  test(`what GraphQL.js publishes, on ${names.join(', ')}`, async () => {
    for (const [query, variables] of queries) {
      const heard = listen(names);
      await execute({ schema, document: parse(query), variableValues: variables });
      const theirs = heard.splice(0);
      const operation = operationOf(schema, query);
      for (let time = 0; time < 2; time++) {
        await operation.run(variables, undefined);
        assert.deepEqual(heard.splice(0), theirs, query);
      }
      if (names === NAMES) assert.ok(theirs.length > 3);
    }
  });

  test(`what GraphQL.js publishes of subscriptions, on ${names.join(', ')}`, async () => {
    for (const query of [
      'subscription { text }',
      'subscription S { fails }',
      'subscription ($v: Int!) { text }',
    ]) {
      const heard = listen(names);
      const results = async (opened: AsyncIterable<ExecutionResult> | ExecutionResult) => {
        if (Symbol.asyncIterator in opened) for await (const _result of opened);
      };
      await results(await subscribe({ schema, document: parse(query) }));
      const theirs = heard.splice(0);
      await results(await operationOf(schema, query).subscribe(undefined, undefined));
      assert.deepEqual(heard.splice(0), theirs, query);
    }
  });
}

test('where nobody listens nothing is published', async () => {
  const heard = listen([]);
  await operationOf(schema, '{ text }').run(undefined, undefined);
  assert.deepEqual(heard, []);
});

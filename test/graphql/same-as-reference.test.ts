import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { maskErrors, Operation } from '@portico/graphql-plans';
import fc from 'fast-check';
import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLSchema,
  Kind,
  NoUnusedFragmentsRule,
  NoUnusedVariablesRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import { defaultsOf } from '../../src/config/options/options.ts';
import { CooperativeScheduler } from '../../src/core/scheduler.ts';
import { usersSchema } from '../../src/graphql/users-schema.ts';
import { LocalUserFeed } from '../../src/relations/events.ts';
import { MemoryUserStore } from '../../src/relations/user-stores.ts';
import { rounds } from '../support/proof-settings.ts';
import { cases } from './reference/cases.ts';
import type { Context } from './reference/moods.ts';
import { type Case, randomCase } from './reference/random-operation.ts';
import { leniently, reference } from './reference/reference.ts';
import { richSchema } from './reference/rich-schema.ts';
import { Schedule } from './reference/schedule.ts';

const LIMITS = defaultsOf('graphql');

const RUNS = rounds(1_000);

/** What is left out only says that a part of the document does nothing. */
const rules = specifiedRules.filter(
  (rule) => rule !== NoUnusedFragmentsRule && rule !== NoUnusedVariablesRule,
);

/** The result as the client sees it, with the order of its keys and of its errors. */
function shown(result: ExecutionResult): unknown {
  const { data, errors } = JSON.parse(JSON.stringify(maskErrors(result, () => {}))) as ExecutionResult;
  return { data, errors: errors?.map((error) => JSON.stringify(error)), order: JSON.stringify(data) };
}

function operationsOf(document: DocumentNode, schema: GraphQLSchema): Map<string | undefined, Operation> {
  const definitions = document.definitions.filter((node) => node.kind === Kind.OPERATION_DEFINITION);
  return new Map(
    definitions.map((definition) => [
      definition.name?.value,
      new Operation(document, definition, {
        schema,
        suggestions: true,
        limits: LIMITS,
        // However slow the machine is, nothing goes on in turns.
        turns: new CooperativeScheduler(0, Number.POSITIVE_INFINITY),
        onPlanned() {},
        meter: undefined,
      }),
    ]),
  );
}

/** Counts what the random documents led to, so that a property that tests nothing is seen. */
class Tally {
  valid = 0;
  invalid = 0;
  readonly results = { data: 0, errors: 0, masked: 0, nulled: 0, refused: 0, promised: 0 };

  add(result: ExecutionResult, promised: boolean): void {
    const text = JSON.stringify(maskErrors(result, () => {}));
    if (promised) this.results.promised++;
    if (!('data' in result)) this.results.refused++;
    else if (result.data === null) this.results.nulled++;
    else if (result.errors === undefined) this.results.data++;
    else this.results.errors++;
    if (text.includes('Internal server error')) this.results.masked++;
  }

  /** Most documents are valid, and each kind of result was there at least `times` times. */
  check(times: number): void {
    assert.ok(this.valid > 2 * this.invalid, JSON.stringify(this));
    for (const [kind, count] of Object.entries(this.results)) assert.ok(count >= times, `${kind}: ${count}`);
  }
}

/** Runs the operations of one document as asked, then once more, and compares each result. */
async function compare({ document: text, runs }: Case, tally: Tally): Promise<void> {
  const document = parse(text);
  if (validate(richSchema, document, rules).length > 0) {
    tally.invalid++;
    return;
  }
  tally.valid++;
  const operations = operationsOf(document, richSchema);
  for (const { operationName, variables } of [...runs, ...runs.slice(0, 1)]) {
    const theirs: Context = { schedule: new Schedule(), done: [] };
    const expected = reference({ schema: richSchema, document, operationName, variables, context: theirs });
    await leniently(async () => {
      await expected;
      await theirs.schedule.drained();
      await turn();
    });
    const ours: Context = { schedule: new Schedule(), done: [] };
    const actual = operations.get(operationName)?.run(variables, ours);
    assert.ok(actual !== undefined);
    assert.equal(actual instanceof Promise, expected instanceof Promise);
    const result = shown(await actual);
    assert.deepEqual(result, shown(await expected));
    await ours.schedule.drained();
    await turn();
    // What went on after the result was there changed nothing.
    assert.deepEqual(shown(await actual), result);
    assert.deepEqual(ours.done, theirs.done);
    tally.add(await expected, expected instanceof Promise);
  }
}

describe('an operation gives what GraphQL.js gives', () => {
  for (const [title, { document, variables }] of Object.entries(cases)) {
    test(title, async () => {
      const tally = new Tally();
      const operationName = 'A';
      await compare(
        { document, runs: variables.map((given) => ({ operationName, variables: given })) },
        tally,
      );
      assert.equal(tally.valid, 1);
    });
  }

  test('whatever a document asks, whatever resolvers do, and however often it runs', async () => {
    const tally = new Tally();
    const property = fc.asyncProperty(randomCase(richSchema), (one) => compare(one, tally));
    await fc.assert(property, { numRuns: RUNS, endOnFailure: true });
    tally.check(RUNS / 50);
  });

  test('on the schema of the users', () => {
    const schemaOf = () => {
      const feed = new LocalUserFeed();
      return usersSchema(new MemoryUserStore(feed, 1_000_000), feed);
    };
    const ours = schemaOf();
    const theirs = schemaOf();
    let valid = 0;
    const property = fc.property(randomCase(ours), ({ document: text, runs }) => {
      const document = parse(text);
      if (validate(ours, document, rules).length > 0) return;
      valid++;
      const operations = operationsOf(document, ours);
      for (const { operationName, variables } of [...runs, ...runs]) {
        const expected = reference({
          schema: theirs,
          document,
          operationName,
          variables,
          context: undefined,
        });
        const actual = operations.get(operationName)?.run(variables, undefined);
        assert.ok(actual !== undefined && !(actual instanceof Promise) && !(expected instanceof Promise));
        assert.deepEqual(shown(actual), shown(expected));
      }
    });
    fc.assert(property, { numRuns: RUNS / 2 });
    assert.ok(valid > RUNS / 4, String(valid));
  });
});

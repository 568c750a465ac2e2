import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LocalUserFeed, SlowSubscriberError } from './events.ts';
import type { User } from './user.ts';

const userOf = (number: number): User => ({ id: String(number), name: `n${number}`, email: 'e@x' });
const DONE = { value: undefined, done: true };

test('a subscriber gets the users from then on, in their order', async () => {
  const feed = new LocalUserFeed();
  feed.publish(userOf(1));
  const users = feed.subscribe();
  feed.publish(userOf(2));
  feed.publish(userOf(3));
  assert.deepEqual(await users.next(), { value: userOf(2), done: false });
  assert.deepEqual(await users.next(), { value: userOf(3), done: false });
  const next = users.next();
  feed.publish(userOf(4));
  assert.deepEqual(await next, { value: userOf(4), done: false });
});

test('a returned iterator is unsubscribed, and its pending read ends', async () => {
  const feed = new LocalUserFeed();
  const users = feed.subscribe();
  feed.publish(userOf(1));
  assert.deepEqual(await users.next(), { value: userOf(1), done: false });
  const next = users.next();
  assert.deepEqual(await users.return?.(), DONE);
  assert.deepEqual(await next, DONE);
  assert.equal(feed.subscribers, 0);
  feed.publish(userOf(2));
  assert.deepEqual(await users.next(), DONE);
  assert.deepEqual(await users.return?.(), DONE);
});

test('a loop that is left ends its subscription', async () => {
  const feed = new LocalUserFeed();
  const users = feed.subscribe();
  feed.publish(userOf(1));
  for await (const user of users) {
    assert.deepEqual(user, userOf(1));
    break;
  }
  assert.equal(feed.subscribers, 0);
});

test('a subscriber that falls a thousand users behind is dropped, with one error', async () => {
  const feed = new LocalUserFeed();
  const slow = feed.subscribe();
  const quick = feed.subscribe();
  for (let number = 1; number <= 1_000; number++) {
    feed.publish(userOf(number));
    assert.deepEqual((await quick.next()).value, userOf(number));
  }
  assert.equal(feed.subscribers, 2);
  feed.publish(userOf(1_001));
  assert.equal(feed.subscribers, 1);
  await assert.rejects(slow.next(), (error) => error instanceof SlowSubscriberError);
  assert.deepEqual(await slow.next(), DONE);
  assert.deepEqual((await quick.next()).value, userOf(1_001));
});

test('one who is a thousand users behind has them all', async () => {
  const feed = new LocalUserFeed();
  const users = feed.subscribe();
  for (let number = 1; number <= 1_000; number++) feed.publish(userOf(number));
  for (let number = 1; number <= 1_000; number++) {
    assert.deepEqual((await users.next()).value, userOf(number));
  }
});

test('subscribers know nothing of each other, in whatever order things happen', async () => {
  const step = fc.oneof(
    fc.record({ does: fc.constant('publish') }),
    fc.record({ does: fc.constantFrom('next', 'return'), who: fc.nat(2) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const feed = new LocalUserFeed();
      const readers = [0, 1, 2].map(() => ({
        users: feed.subscribe(),
        given: [] as Promise<IteratorResult<User>>[],
        due: [] as User[],
        left: false,
      }));
      let number = 0;
      for (const { does, ...rest } of steps) {
        const reader = 'who' in rest ? readers[rest.who] : undefined;
        if (does === 'publish') {
          const user = userOf(++number);
          for (const { due, left } of readers) if (!left) due.push(user);
          feed.publish(user);
        } else if (reader !== undefined && does === 'return') {
          await reader.users.return?.();
          // What was not fetched by then is dropped.
          if (!reader.left) reader.due.length = Math.min(reader.due.length, reader.given.length);
          reader.left = true;
          // One who waits for the next user asks for no other one before it is there.
        } else if (reader !== undefined && (reader.left || reader.given.length <= reader.due.length)) {
          reader.given.push(reader.users.next());
        }
      }
      assert.equal(feed.subscribers, readers.filter(({ left }) => !left).length);
      for (const { users, given, due } of readers) {
        await users.return?.();
        const expected = given.map((_, index) => due[index] ?? undefined);
        assert.deepEqual(
          (await Promise.all(given)).map(({ value }) => value),
          expected,
        );
      }
    }),
  );
});

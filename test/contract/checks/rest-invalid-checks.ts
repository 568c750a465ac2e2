import assert from 'node:assert/strict';
import type { Check, Subject } from '../check.ts';
import { assertMessage, changesNothing, created, jsonBody, person, put } from '../clients/rest.ts';

const email = 'ada@example.org';
const wrongTypes: readonly unknown[] = [1, 0, true, null, [], ['Ada'], {}, { first: 'Ada' }];

/** Bodies that name no user, by what is wrong with them. */
const invalid = {
  missing: [{}, { name: 'Ada' }, { email }, { Name: 'Ada', Email: email }, { user: { name: 'Ada', email } }],
  empty: [
    { name: '', email },
    { name: 'Ada', email: '' },
    { name: '', email: '' },
  ],
  types: wrongTypes.flatMap((wrong) => [
    { name: wrong, email },
    { name: 'Ada', email: wrong },
  ]),
  noAddress: [{ name: 'Ada', email: 'example.org' }],
  tooLong: [
    { name: 'A'.repeat(20_000), email },
    { name: 'Ada', email: `${'a'.repeat(20_000)}@example.org` },
  ],
  noObject: [[], [{ name: 'Ada', email }], null, 1, 'Ada', true],
} as const;

const malformed = [
  '{',
  '{"name":"Ada","email":"ada@example.org"',
  '{"name":"Ada","email":"ada@example.org"}}',
  '{"name":"Ada","email":"ada@example.org"} {}',
  "{'name':'Ada','email':'ada@example.org'}",
  '{"name":"Ada","email":"ada@example.org",}',
  '{name:"Ada",email:"ada@example.org"}',
  'name=Ada&email=ada@example.org',
  '{"name":"A\nda","email":"ada@example.org"}',
  'undefined',
  'NaN',
  '<user/>',
  '   ',
];

type Texts = readonly (string | undefined)[];
const textsOf = (bodies: readonly unknown[]): Texts => bodies.map((body) => JSON.stringify(body));

/** Every text must be refused by create and by update, each in the words of CONTRACT.md#errors, and change nothing. */
async function refuses(subject: Subject, texts: Texts): Promise<void> {
  const { id } = await created(subject);
  await changesNothing(subject, async () => {
    for (const [method, path, message] of [
      ['POST', '/users', 'Failed to create user'],
      ['PUT', `/update/${id}`, 'Failed to update user'],
    ] as const) {
      for (const text of texts) {
        const options = { headers: jsonBody, ...(text === undefined ? {} : { body: text }) };
        const reply = await subject.rest.send(method, path, options);
        assert.equal(reply.status, 400, `${method} ${text?.slice(0, 80)}`);
        assertMessage(reply, 'error', message);
      }
    }
  });
}

const rows: readonly (readonly [id: string, title: string, texts: Texts])[] = [
  ['REST-50', 'a body without name or email is refused with 400', textsOf(invalid.missing)],
  ['REST-51', 'an empty name or email is refused with 400', textsOf(invalid.empty)],
  ['REST-52', 'a name or email that is no string is refused with 400', textsOf(invalid.types)],
  ['REST-53', 'an email without @ is refused with 400', textsOf(invalid.noAddress)],
  ['REST-54', 'a name or email beyond all sane length is refused with 400', textsOf(invalid.tooLong)],
  ['REST-55', 'malformed JSON is refused with 400', malformed],
  ['REST-56', 'JSON that is no object is refused with 400', textsOf(invalid.noObject)],
  ['REST-57', 'an empty body is refused with 400', ['', undefined]],
];

/** Bodies that create and update must refuse. */
export const restInvalidChecks: readonly Check[] = [
  ...rows.map(
    ([id, title, texts]): Check => ({
      id,
      heading: 'errors',
      level: 'SHOULD',
      title,
      run: (subject) => refuses(subject, texts),
    }),
  ),
  {
    id: 'REST-58',
    heading: 'errors',
    level: 'SHOULD',
    title: 'a refused update leaves every field as it was',
    async run(subject) {
      const { id } = await created(subject);
      await changesNothing(subject, async () => {
        await put(subject, id, { name: 'half' });
        await put(subject, id, { email: 'half@example.org' });
        await put(subject, id, { name: 'half', email: 7 });
      });
    },
  },
  {
    id: 'REST-59',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'ordinary long names and addresses are accepted',
    async run(subject) {
      const { name, email: address } = person();
      const long = { name: `${name} ${'von '.repeat(15)}`, email: `${'a'.repeat(20)}.${address}` };
      const { id } = await created(subject, long);
      assert.ok(id > 0);
    },
  },
];

import assert from 'node:assert/strict';
import type { Check, Subject } from '../check.ts';
import { created, jsonBody, list, post, put, read } from '../clients/rest.ts';
import { texts } from '../clients/texts.ts';
import { unique } from '../clients/unique.ts';

/** JSON in pure ASCII: every other character as an escape. */
function escaped(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The user with this email; its name is what is being tested. */
async function byEmail(subject: Subject, email: string): Promise<{ id: number; name: string } | undefined> {
  return (await list(subject)).find((user) => user.email === email);
}

/** Text goes in and comes out unharmed. */
export const restTextChecks: readonly Check[] = [
  {
    id: 'REST-70',
    heading: 'rest-user',
    level: 'MUST',
    title: 'names and emails in any script come back exactly as they were sent',
    async run(subject) {
      for (const text of texts) {
        const sent = { name: `${text}${unique('')}`, email: `${text}@${unique('')}` };
        const { id } = await created(subject, sent);
        assert.deepEqual(await read(subject, id), { id, ...sent });
      }
    },
  },
  {
    id: 'REST-71',
    heading: 'rest-user',
    level: 'MUST',
    title: 'an update keeps any text as it was sent',
    async run(subject) {
      const { id } = await created(subject);
      for (const text of texts) {
        const sent = { name: text, email: `${text}@example.org` };
        await put(subject, id, sent);
        assert.deepEqual(await read(subject, id), { id, ...sent });
      }
    },
  },
  {
    id: 'REST-72',
    heading: 'rest-routes',
    level: 'MUST',
    title: 'escapes in the JSON of a body mean the same as the characters',
    async run(subject) {
      for (const text of texts) {
        const email = `${unique('e')}@example.org`;
        await subject.rest.send('POST', '/users', {
          headers: jsonBody,
          body: escaped({ name: text, email }),
        });
        assert.equal((await byEmail(subject, email))?.name, text);
      }
    },
  },
  {
    id: 'REST-73',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'a NUL or half a surrogate pair is refused or kept, never cut or replaced',
    async run(subject) {
      for (const name of ['a\0b', '\0', 'end\0', 'half \ud800', '\udc00 half', 'turned \udc00\ud800']) {
        const email = `${unique('e')}@example.org`;
        const reply = await post(subject, { name, email });
        const kept = await byEmail(subject, email);
        if (kept === undefined) assert.equal(reply.status, 400, JSON.stringify(name));
        else assert.equal(kept.name, name);
      }
    },
  },
  {
    id: 'REST-74',
    heading: 'rest-user',
    level: 'MUST',
    title: 'any text is still the same after a restart',
    needs: { place: 'apart', restart: true },
    async run(subject) {
      for (const text of texts) await post(subject, { name: text, email: `${text}@example.org` });
      await subject.restart?.();
      const users = await list(subject);
      assert.deepEqual(
        users.slice(-texts.length).map(({ name, email }) => ({ name, email })),
        texts.map((text) => ({ name: text, email: `${text}@example.org` })),
      );
    },
  },
  {
    id: 'REST-75',
    heading: 'rest-user',
    level: 'SHOULD',
    title: 'a name takes its last value when a body has it twice, or the body is refused',
    async run(subject) {
      const email = `${unique('e')}@example.org`;
      const body = `{"name":"first","name":"second","email":"${email}"}`;
      const reply = await subject.rest.send('POST', '/users', { headers: jsonBody, body });
      const kept = await byEmail(subject, email);
      if (kept === undefined) assert.equal(reply.status, 400);
      else assert.equal(kept.name, 'second');
    },
  },
];

/** A configuration module's text with these members; `head` stands before them. */
function moduleText(members: string, head = ''): string {
  return `${head}\nexport default {\n${members}\n};\n`;
}

/** Two checks that find nothing wrong, one of them late. */
export const healthyModule = moduleText(`
  management: {
    healthChecks: {
      quick: () => 0,
      late: async () => { await new Promise((done) => setTimeout(done, 5)); return 0; },
    },
  },`);

/** One check that finds nothing wrong, one that fails with this code. */
export const failingModule = (code: number) =>
  moduleText(`
  management: { healthChecks: { quick: () => 0, quota: async () => ${code} } },`);

/** A check that throws, and beside it one that finds nothing wrong. */
export const throwingModule = moduleText(`
  management: {
    healthChecks: { quick: () => 0, broken: () => { throw new Error('the tank is empty'); } },
  },`);

/** A check whose code the custom endpoints \`break\` and \`repair\` change. */
export const changingModule = moduleText(
  `
  management: {
    healthChecks: { pump: () => code },
    endpoints: [
      { id: 'break', read: () => { code = 7; return 'broken'; } },
      { id: 'repair', read: () => { code = 0; return 'repaired'; } },
    ],
  },`,
  'let code = 0;',
);

/** What the custom endpoint \`greeting\` of \`endpointModule\` returns. */
export const greeting = 'Grüß Gott, "world" <b>😀</b>\n{"not":"json"}';

/** Custom endpoints: one returns its text at once, one late, one fails. */
export const endpointModule = moduleText(`
  management: {
    endpoints: [
      { id: 'greeting', read: () => ${JSON.stringify(greeting)} },
      { id: 'later', read: async () => { await new Promise((done) => setTimeout(done, 5)); return 'later'; } },
      { id: 'broken', read: () => { throw new Error('the secret inside'); } },
    ],
  },`);

/** A user beside the configured one, who does not have the role. */
export const usersModule = moduleText(`
  management: { users: [
    { user: 'guest', password: 'guest-password', roles: ['READER'] },
    { user: 'second', password: 'second-password', roles: ['READER', 'OPERATOR'] },
  ] },`);

/**
 * Handlers that note their calls; the custom endpoint \`calls\` shows them.
 * \`order_held\` waits until the custom endpoint \`release\` was read, \`order_broken\` throws.
 */
export const handlerModule = moduleText(
  `
  management: {
    endpoints: [
      { id: 'calls', read: () => JSON.stringify(calls) },
      { id: 'release', read: () => { release(); return 'released'; } },
    ],
  },
  webhook: {
    handlers: {
      order_placed: (delivery) => note(delivery),
      order_held: async (delivery) => { await released; note(delivery); },
      order_flaky: (delivery) => {
        note(delivery);
        if (calls.length === 1) throw new Error('not yet');
      },
      order_broken: async (delivery) => { note(delivery); throw new Error('cannot handle this'); },
    },
  },`,
  `const calls = [];
let release = () => {};
const released = new Promise((done) => { release = done; });
function note(delivery) {
  const { id, event, data, receivedAt } = delivery;
  const isDate = receivedAt instanceof Date;
  calls.push({ id, event, data, receivedAt, keys: Object.keys(delivery).sort(), isDate });
}`,
);

/**
 * A handler that holds all its deliveries back until the custom endpoint `release` was read, which the next life
 * of the service remembers. `calls` shows what was handled: `held` tells whether it began before the release.
 */
export const waitingModule = moduleText(
  `
  management: {
    endpoints: [
      { id: 'calls', read: () => JSON.stringify(read()) },
      { id: 'begun', read: () => String(begun) },
      { id: 'release', read: () => { writeFileSync(marker, ''); release(); return 'released'; } },
    ],
  },
  webhook: {
    handlers: {
      order_waiting: async (delivery) => {
        begun += 1;
        const held = !existsSync(marker);
        if (held) await released;
        appendFileSync(calls, JSON.stringify({ ...delivery, held }) + '\\n');
      },
    },
  },`,
  `import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
const marker = join(import.meta.dirname, 'released');
const calls = join(import.meta.dirname, 'calls');
let begun = 0;
let release = () => {};
const released = new Promise((done) => { release = done; });
const lines = () => existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\\n') : [];
const read = () => lines().map((line) => JSON.parse(line));`,
);

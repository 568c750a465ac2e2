const operator = {
  MANAGEMENT_USER: 'operator',
  MANAGEMENT_PASSWORD: 'pass:with:colons and spaces',
  MANAGEMENT_ROLE: 'OPERATOR',
};

/** Settings that serve several checks, because they do not disturb each other. */
export const settings = {
  operator,
  operatorElsewhere: {
    ...operator,
    MANAGEMENT_BASE_PATH: '/manage',
    MANAGEMENT_INCLUDE: 'health,metrics',
  },
  operatorAtRoot: { ...operator, MANAGEMENT_BASE_PATH: '/' },
  beyondAscii: {
    MANAGEMENT_USER: 'Жанна',
    MANAGEMENT_PASSWORD: 'pässwörd😀',
    MANAGEMENT_ROLE: 'OPERATOR',
    WEBHOOK_SECRET: 'Schlüssel-ключ',
  },
  secret: { WEBHOOK_SECRET: 'The-Shared-Secret-1', MANAGEMENT_INCLUDE: '*' },
  twoSecrets: {
    WEBHOOK_SECRET: 'the-old-one,the-new-one',
    MANAGEMENT_INCLUDE: 'metrics',
    GRAPHQL_USERS: 'database',
  },
  shownValues: {
    MANAGEMENT_SHOW_VALUES: 'always',
    WEBHOOK_SECRET: 'canary-7f3d51c0',
    LOG_LEVEL: 'info',
    PROFILES: 'production,blue',
    GRAPHQL_PATH: '/api/v2/graph',
  },
  deepPath: { MANAGEMENT_BASE_PATH: '/internal/ops', MANAGEMENT_INCLUDE: ' health , info,  metrics ,env ' },
} as const;

/** A configuration module's text with these members; `head` stands before them. */
function moduleText(members: string, head = ''): string {
  return `${head}\nexport default {\n${members}\n};\n`;
}

/** What the custom endpoint `greeting` of `fullModule` returns. */
export const greeting = 'Grüß Gott, "world" <b>😀</b>\n{"not":"json"}';

/** A user beside the configured one, who does not have the role. */
export const usersModule = moduleText(`
  management: { users: [
    { user: 'guest', password: 'guest-password', roles: ['READER'] },
    { user: 'second', password: 'second-password', roles: ['READER', 'OPERATOR'] },
  ] },`);

/**
 * Everything that a module may add, for all checks that need some of it.
 *
 * - Health checks: the result of `pump` is the code that the custom endpoints `break`, `negate` and `repair` set; after
 *   `explode` it throws.
 * - Custom endpoints that return a text at once, late or never.
 * - Handlers that note their calls, which the custom endpoint `calls` shows. `order_held` waits until the custom
 *   endpoint `release` was read, `order_flaky` throws at its first attempt, `order_broken` at each.
 */
export const fullModule = moduleText(
  `
  management: {
    healthChecks: {
      quick: () => 0,
      late: async () => { await pause(); return 0; },
      pump: () => { if (code === undefined) throw new Error('the tank is empty'); return code; },
    },
    endpoints: [
      { id: 'break', read: () => { code = 8437; return 'broken'; } },
      { id: 'negate', read: () => { code = -1; return 'broken'; } },
      { id: 'explode', read: () => { code = undefined; return 'broken'; } },
      { id: 'repair', read: () => { code = 0; return 'repaired'; } },
      { id: 'greeting', read: () => ${JSON.stringify(greeting)} },
      { id: 'later', read: async () => { await pause(); return 'later'; } },
      { id: 'broken', read: () => { throw new Error('the secret inside'); } },
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
        if (calls.filter(({ id }) => id === delivery.id).length === 1) throw new Error('not yet');
      },
      order_broken: async (delivery) => { note(delivery); throw new Error('cannot handle this'); },
    },
  },`,
  `const pause = () => new Promise((done) => setTimeout(done, 5));
let code = 0;
const calls = [];
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

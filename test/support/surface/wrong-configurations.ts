import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import Fastify, { type FastifyPluginAsync } from 'fastify';
import { type ConfigSource, createService, loadConfig } from 'portico';
import { management } from 'portico/management';
import { rest } from 'portico/rest';
import { webhook } from 'portico/webhook';
import type { CommandResult } from '../run-command.ts';

/** Modules that are wrong, by what they get wrong: the expression that each exports by default. */
const MODULES: Readonly<Record<string, string>> = {
  'unknown keys':
    '{ mangement: {}, rest: { prot: 1 }, webhook: { handler: {}, nothing: 1 }, limit: {}, log: { request: true } }',
  'keys with dots': '{ "rest.port": 1, management: { "base.path": "/x" } }',
  'values in place of sections':
    '{ rest: 9000, webhook: "hidden", management: null, graphql: [], api: { jwt: "hidden" }, tls: () => {} }',
  'lists with holes': '{ interfaces: new Array(1), profiles: [,"a"], webhook: { secret: new Array(2) } }',
  'choices twice': '{ interfaces: ["rest", "rest"], management: { info: ["build", "build"] } }',
  'code keys of other types':
    '{ graphql: { context: 1, typeDefs: 1, resolvers: 2, setup: {} }, rest: { setup: "x" }, management: { setup: 1 }, webhook: { setup: null } }',
  'graphql.schema beside typeDefs': '{ graphql: { schema: {}, typeDefs: "type Query { a: Int }" } }',
  'a schema that does not parse': '{ graphql: { typeDefs: "type Query {" } }',
  'resolvers of unknown types and fields':
    '{ graphql: { typeDefs: "extend type Query { a: Int }", resolvers: { Qeury: {}, Query: { b: () => 1, a: 3 } } } }',
  'containers of code':
    '{ management: { healthChecks: [], healthGroups: "x", endpoints: {}, users: "root" }, webhook: { handlers: () => {}, sources: [], forward: 1, alerts: "x", schedules: [] }, api: { tokens: [] } }',
  'health checks':
    '{ management: { healthChecks: { nothing: {}, number: 1, early: { check() {}, timeout: 0 }, late: { check() {}, timeout: 86400001 }, half: { check() {}, timeout: 0.5, ttl: -1 }, text: { check: "df", ttl: "1s", critical: "no" }, other: { check() {}, tll: 5 }, "a b": () => 0, diskSpace: () => 0, readiness: () => 0 } } }',
  'health groups':
    '{ management: { healthChecks: { disk: () => 0 }, healthGroups: { empty: {}, none: { include: [] }, text: { include: "disk", exclude: "db" }, typo: { include: ["dsik"], exclude: ["nothing", 1] }, holes: { include: new Array(1) }, other: { include: ["db"], includes: [] }, shown: { include: ["db"], showDetails: "sometimes" }, list: [], disk: { include: ["db"] }, db: { include: ["disk"] }, "a b": { include: ["db"] } } } }',
  'custom endpoints':
    '{ management: { endpoints: [null, { id: "Git", read: "x" }, { id: "ok", read() {}, wirte: 1 }, {}, { id: "info", read() {} }, { id: "a", read() {}, path: "a/b" }, { id: "b", read() {}, query: ["limit", "limit?"] }, { id: "git-state", read() {} }, { id: "gitState", read() {} }] } }',
  'users of the management door':
    '{ management: { users: [{ user: "a:b", password: "", roles: "ADMIN" }, { user: "a", pasword: "hidden", roles: [""] }, { user: "b", password: "$scrypt$hidden", roles: [] }, { user: "b", password: "hidden", roles: [] }] } }',
  'a user in both places':
    '{ management: { user: "admin", password: "hidden", users: [{ user: "admin", password: "hidden", roles: [] }] } }',
  'tokens without their parts':
    '{ api: { required: "all", tokens: { a: {}, "B C": { secret: "hidden", scopes: [] }, c: { secret: "hidden", scopes: "x", expires: "tomorrow" }, d: { secrets: "hidden", scopes: ["users:read"] }, e: { secret: "hidden", scopes: [], expires: "2026-02-31" } } } }',
  'tokens with secrets and scopes that do not exist':
    '{ api: { required: "all", tokens: { a: { secret: { env: "NO_SUCH_VARIABLE" }, scopes: ["users:raed"] }, b: { secret: { file: "/no/such/file" }, scopes: ["users:read"] }, c: { secret: "short", scopes: ["users:read"] } } } }',
  handlers:
    '{ webhook: { handlers: { ping: {}, number: 1, text: { handler: "x" }, limits: { handler() {}, concurrency: 0, timeout: 0.5, attempts: "1", isolate: 1, atempts: 2 }, order: { handler() {}, order: "id", priority: 101, runAt: 5 } } } }',
  'conditions of handlers':
    '{ webhook: { handlers: { a: { handler() {}, when: "opened" }, b: { handler() {}, when: { pointer: "action", is: 1 } }, c: { handler() {}, when: { pointer: "/a" } }, d: { handler() {}, when: { pointer: "/a", iss: 1 } }, e: { handler() {}, when: { pointer: "/a", is: {}, in: [], includes: [], exists: 1, startsWith: 1, above: "1" } }, f: { handler() {}, when: { all: [] } }, g: { handler() {}, when: { any: {} } }, h: { handler() {}, when: { not: { all: [{ pointer: "/a", above: null }] } } }, i: { handler() {}, when: { all: [{ pointer: "/a", is: 1 }], pointer: "/b", is: 1 } } } } }',
  sources:
    '{ webhook: { sources: { a: 1, "Git Hub": { scheme: "github", secrets: "hidden" }, b: {}, c: { scheme: "gihub", secrets: "hidden" }, d: { scheme: "github", secrets: "hidden", secret: "hidden" }, e: { scheme: "stripe", secrets: "hidden", tolerance: "300" }, f: { scheme: "github", secrets: "hidden", maxBodyBytes: 0 }, g: { scheme: "github", secrets: "hidden", headers: ["x event", "Cookie"] }, h: { scheme: "github", secrets: "hidden", event: "/type", dedup: true, data: "data", events: ["push"] }, i: { scheme: "github", secrets: "hidden", events: { push: "" } }, j: { scheme: "hmac", secrets: "hidden" }, k: { scheme: "hmac", secrets: "hidden", header: "x", algorithm: "md5", encoding: "HEX", prefix: "é" }, l: { scheme: "hmac", secrets: "hidden", header: "x", template: "{id}{body}" }, m: { scheme: "hmac", secrets: "hidden", header: "x", tolerance: 10 }, n: { scheme: "standard", secrets: "hidden", headerPrefix: "" }, o: { scheme: "token", secrets: "hidden", header: "a:" } } } }',
  'secrets of sources':
    '{ webhook: { sources: { a: { scheme: "github", secrets: [] }, b: { scheme: "github", secrets: 7 }, c: { scheme: "github", secrets: { env: "A", file: "b" } }, d: { scheme: "github", secrets: { env: "NO_SUCH_VARIABLE" } }, e: { scheme: "github", secrets: { env: "hidden" } }, f: { scheme: "github", secrets: { file: "/no/such/file" } }, g: { scheme: "github", secrets: "hidden\\n" }, h: { scheme: "standard", secrets: "hidden" } } } }',
  'forward addresses':
    '{ webhook: { forward: { a: 1, "A B": "https://example.com", b: "ftp://example.com", c: {}, d: { url: "https://user:hidden@example.com" }, e: { url: "https://example.com", evnets: [] }, f: { url: "https://example.com", events: "a", users: ["renamed"], transform: 1, rate: "10/d", order: "id", priority: -1, runAt: 5, allowPrivate: 1, concurrency: 0, timeout: 0, attempts: 0 }, g: { url: "https://example.com", secrets: "hidden" }, h: { url: "https://example.com", transform: { body: "data", headers: { "x y": "a", cookie: "a", "x-a": "{nothing}" }, more: 1 } }, i: { url: "https://example.com", when: { pointer: "/a" } }, j: { url: "https://example.com", rate: { limit: "1/s", bursts: 1 } }, k: "http://10.0.0.1/" } } }',
  alerts:
    '{ webhook: { alerts: { dead: { url: "example.com", interval: 1, threshold: -1, down: "yes", every: 1, timeout: 0, attempts: 0, secrets: 1 } } } }',
  'alerts of unknown kinds': '{ webhook: { alerts: { daed: {} } } }',
  schedules:
    '{ webhook: { schedules: { a: 1, "A B": "0 3 * * *", b: "0 3 * *", c: { corn: "0 3 * * *" }, d: { cron: "0 3 * * *", timezone: "Mars/Base", event: "", data: [], grace: 1 }, e: "0 0 30 2 *" } } }',
  'a module that throws': '(() => { throw new Error("hidden? no") })()',
  'a text': '"x"',
  'a promise of nothing': 'Promise.resolve()',
};

/** Files that cannot be modules, by name. */
const FILES: Readonly<Record<string, string>> = {
  'early.json': '{ "rest": ',
  'broken.json': '{ "rest": { "port": 1, } }',
  'list.json': '[]',
  'code.json':
    '{ "webhook": { "handlers": {}, "setup": 1 }, "management": { "healthChecks": {} }, "graphql": { "typeDefs": "" } }',
  'nothing.mjs': 'export const a = 1;',
  'syntax.mjs': 'export default {',
  'types.ts': 'enum A { b }\nexport default {};',
  'package.mjs': 'import "no-such-package";\nexport default {};',
  'config.yaml': '',
};

/** Settings that contradict each other, or that no check of a single value finds. */
const CONFLICTS: readonly Readonly<Record<string, string>>[] = [
  { MANAGEMENT_USER: 'a' },
  { MANAGEMENT_PASSWORD: 'hidden' },
  { SPRING_BOOT_ADMIN_PASSWORD: 'hidden' },
  { TLS_CERT: 'a.pem' },
  { TLS_KEY: 'a.pem' },
  { API_JWT_ISSUER: 'https://example.com' },
  { API_JWT_ISSUER: 'https://example.com', API_JWT_JWKS: 'keys.json' },
  { MANAGEMENT_ROLE: 'ADMIN' },
  { REST_PORT: '8080', PORT: '8080' },
  { MANAGEMENT_CLIENT_CA: 'a.pem' },
  { MANAGEMENT_CLIENT_CA: 'a.pem', TLS_CERT: 'a.pem', TLS_KEY: 'a.pem', MANAGEMENT_PORT: 'unix:/tmp/a' },
  { WEBHOOK_CLIENT_CA: 'a.pem' },
  { SPRING_BOOT_ADMIN_URL: 'http://admin', MANAGEMENT_PORT: 'unix:/tmp/a' },
  { MANAGEMENT_INCLUDE: 'helth,*,beans' },
  { MANAGEMENT_EXCLUDE: 'helth,*,beans' },
  { MANAGEMENT_ENDPOINT_ACCESS: 'shutdwon=unrestricted,loggers=none,Log-gers=read-only' },
  { DATABASE_READ_URL: 'postgres://replica/x' },
  { BACKUP_EVERY: '1d', DATABASE_URL: 'postgres://h/d' },
  { BACKUP_EVERY: '1d', DATABASE_URL: 'sqlite::memory:' },
  { REST_CORS_ORIGINS: '*', REST_CORS_CREDENTIALS: 'true' },
  { GRAPHQL_CORS_ORIGINS: '*', GRAPHQL_CORS_CREDENTIALS: 'true' },
  { API_BASIC: 'users:raed' },
  { WEBHOOK_SECRET: 'hidden', WEBHOOK_SECRET_FILE: '/no/such/file' },
  { WEBHOOK_SECRET_FILE: '/no/such/file' },
  { WEBHOOK_SECRET_FILE: '' },
  { MANAGEMENT_PASSWORD: '$scrypt$hidden', MANAGEMENT_USER: 'a' },
  { MANAGEMENT_TRUST_FORWARDED: 'true', MANAGEMENT_CONSOLE_HOSTS: 'a' },
  { CONFIG: '' },
  { CONFIG: 'no-such-file.ts' },
];

/** Settings that are wrong only once the service opens what they name. */
const OPENED: readonly Readonly<Record<string, string>>[] = [
  { TLS_CERT: '/no/such/file', TLS_KEY: '/no/such/file' },
  {
    API_REQUIRED: 'all',
    API_JWT_ISSUER: 'https://example.com',
    API_JWT_AUDIENCE: 'a',
    API_JWT_JWKS: '/no/such/file',
  },
];

/** Wrong options of the doors as plugins. */
const PLUGINS: readonly (readonly [string, unknown, Readonly<Record<string, unknown>>])[] = [
  [
    'webhook: numbers',
    webhook,
    {
      inbox: {},
      attempts: 0,
      timeout: 0,
      concurrency: 0.5,
      backoff: -1,
      maxBackoff: -1,
      lease: 1,
      handlerGrace: -1,
      maxBodyBytes: 0,
      maxBytesInFlight: 0,
      retention: -1,
      retentionBytes: '1',
      dedupDays: null,
      keptAttempts: -1,
      headers: ['cookie'],
      stopTimeout: -1,
    },
  ],
  [
    'webhook: code',
    webhook,
    { inbox: {}, handlers: { a: 1 }, sources: { a: 1 }, forward: { a: 1 }, schedules: { a: 1 } },
  ],
  ['webhook: an isolated handler', webhook, { inbox: {}, handlers: { a: { handler() {}, isolate: true } } }],
  ['management: base path', management, { basePath: 'actuator' }],
  [
    'management: endpoints',
    management,
    {
      endpoints: [
        { id: 'info', read: () => '' },
        { id: 'a', raed: 1 },
      ],
    },
  ],
  ['rest: rate', rest, { users: {}, api: { rate: '1/d' } }],
  ['rest: scopes of Basic', rest, { users: {}, api: { required: 'all', basic: ['users:raed'] } }],
  [
    'rest: identity provider',
    rest,
    { users: {}, api: { required: 'all', jwt: { issuer: 'https://example.com' } } },
  ],
  [
    'rest: tokens',
    rest,
    { users: {}, api: { required: 'all', tokens: { a: { secret: 'short', scopes: ['x'] } } } },
  ],
];

const COMMAND_LINES: readonly (readonly string[])[] = [
  ['--rest-prot', '1'],
  ['--port=1'],
  ['--nothing-like-it'],
  ['-p', '1'],
  ['word'],
  ['--rest-port=1', 'word'],
  ['--management-password', 'a', 'hidden'],
  ['--config='],
  ['--config'],
  ['--config=a', '--config=b'],
  ['--config=config.txt'],
  ['--no-migrate=x'],
  ['--no-migrate', '--database-migrate=true'],
];

/** Texts that few settings take, for flags and variables. */
const TEXTS = ['', ' ', '\u0001', '-1', '99999999999999999999', '0.5', 'nonsense'];
/** Values that few settings take, for the module. */
const VALUES = [{}, [], null, true, 1.5, -1, Number.MAX_SAFE_INTEGER + 1, '', ' ', 'nonsense', [1]];

type Run = (args: readonly string[], cwd: string) => Promise<CommandResult>;

/** Every message that a wrong configuration gets. `cwd` is an empty folder; `serve` calls the command in a folder. */
export async function describeWrongConfigurations(
  cwd: string,
  settings: readonly HelpedSetting[],
  serve: Run,
): Promise<string> {
  const folder = () => mkdtempSync(join(cwd, 'wrong-'));
  const empty = folder();
  const given = (source: Partial<ConfigSource>) =>
    messagesOf(() => loadConfig({ argv: [], env: {}, cwd: empty, ...source }));
  const blocks: string[] = [];
  const add = (title: string, lines: readonly string[]) =>
    lines.length > 0 && blocks.push([title, ...lines.map((line) => `  ${hidden(line, cwd)}`)].join('\n'));

  for (const { key, flag, env } of settings) {
    const flags = [
      [flag],
      ...TEXTS.map((text) => [`${flag}=${text}`]),
      [`${flag}=${TEXTS.at(-1)}`, `${flag}=x`],
    ];
    const texts = await Promise.all(flags.map((argv) => given({ argv })));
    const named = (text: string) => text.replaceAll(flag, '<flag>').replaceAll('leave it out', 'unset it');
    const variables = await Promise.all(TEXTS.map((text) => given({ env: { [env]: text } })));
    const other = variables
      .flat()
      .filter((line) => !texts.flat().map(named).includes(line.replace(env, '<flag>')));
    const values: string[] = [];
    for (const value of VALUES) {
      const cwd = folder();
      writeFileSync(join(cwd, 'a.json'), JSON.stringify(nested(key, value)));
      values.push(...(await given({ cwd, env: { CONFIG: 'a.json' } })));
    }
    add(key, joined([...texts.flat(), ...other, ...values]));
  }
  for (const argv of COMMAND_LINES) add(`$ portico serve ${argv.join(' ')}`, await given({ argv }));
  for (const env of CONFLICTS) add(titleOf(env), await given({ env }));
  for (const env of OPENED) add(titleOf(env), await openedWith(env, empty));
  for (const [name, text] of Object.entries(FILES)) {
    const cwd = folder();
    writeFileSync(join(cwd, name), text);
    add(name, await served(serve, cwd, name));
  }
  for (const [title, text] of Object.entries(MODULES)) {
    const cwd = folder();
    writeFileSync(join(cwd, 'a.mjs'), `export default ${text};`);
    const found = await served(serve, cwd, 'a.mjs');
    const opened = found.length > 0 ? [] : await openedWith({ CONFIG: 'a.mjs' }, cwd);
    add(title, [...found, ...opened]);
  }
  for (const [title, plugin, options] of PLUGINS) {
    const app = Fastify();
    app.register(plugin as FastifyPluginAsync<object>, options);
    add(`plugin ${title}`, await messagesOf(async () => app.ready()));
    await app.close().catch(() => {});
  }
  return blocks.join('\n\n');
}

/** A line without what differs from run to run. */
function hidden(line: string, folder: string): string {
  return line.replaceAll(folder, '<folder>').replace(/wrong-\w{6}/g, 'wrong');
}

/** The names of a setting. */
export interface HelpedSetting {
  readonly key: string;
  readonly flag: string;
  readonly env: string;
}

/** The messages, each once; those that differ in the refused value only become one. */
function joined(messages: readonly string[]): readonly string[] {
  const values = new Map<string, Set<string>>();
  for (const message of messages) {
    const [, rule = message, value = ''] = /^(.* must be .*), not (.*)$/.exec(message) ?? [];
    values.set(rule, (values.get(rule) ?? new Set()).add(value));
  }
  return Array.from(values, ([rule, given]) => {
    const [first = ''] = given;
    return given.size === 1 && first === '' ? rule : `${rule}, not ${[...given].join(' | ')}`;
  });
}

function titleOf(env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

function nested(key: string, value: unknown): unknown {
  return key
    .split('.')
    .toReversed()
    .reduce((inner, name) => ({ [name]: inner }), value);
}

async function messagesOf(load: () => Promise<unknown>): Promise<readonly string[]> {
  try {
    await load();
    return [];
  } catch (error) {
    return (error as { readonly problems?: readonly string[] }).problems ?? String(error).split('\n');
  }
}

/** The messages of the command, which also runs the checks of the doors. A second problem keeps it from starting. */
async function served(serve: Run, cwd: string, name: string): Promise<readonly string[]> {
  const { stderr } = await serve(['serve', '--host=', `--config=${name}`], cwd);
  return stderr
    .split('\n')
    .filter((line) => line.startsWith('  - ') && !line.includes('--host'))
    .map((line) => line.slice(4));
}

/** What the log of a service without an answer is written to. */
const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });

/** The messages of a service that opens; it listens nowhere. */
function openedWith(env: Readonly<Record<string, string>>, cwd: string): Promise<readonly string[]> {
  return messagesOf(async () => {
    const config = await loadConfig({ argv: [], env: { DATABASE_URL: 'sqlite::memory:', ...env }, cwd });
    await using _service = await createService(config, { logStream: nowhere });
  });
}

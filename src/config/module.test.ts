import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { expectedPassword } from '../core/passwords.ts';
import { displayPath, findModule, readModuleSettings } from './module.ts';

describe('module file', () => {
  test('the module of the working folder is found by its name', async () => {
    for (const ending of ['ts', 'mts', 'js', 'mjs', 'json']) {
      await using folder = await temporaryFolder();
      const name = `portico.config.${ending}`;
      const path = join(folder.path, name);
      assert.deepEqual(findModule(folder.path, undefined, undefined), { file: undefined });
      await writeFile(path, '{}');
      assert.deepEqual(findModule(folder.path, undefined, undefined), { file: { path, name } });
    }
  });

  test('a folder of that name is none', async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, 'portico.config.ts'));
    assert.deepEqual(findModule(folder.path, undefined, undefined), { file: undefined });
  });

  test('several modules are a problem, unless one is named', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'portico.config.ts'), '');
    await writeFile(join(folder.path, 'portico.config.json'), '');
    assert.deepEqual(findModule(folder.path, undefined, undefined), {
      problem: 'portico.config.ts and portico.config.json are both here; keep one or name one with --config',
    });
    const path = join(folder.path, 'portico.config.json');
    assert.deepEqual(findModule(folder.path, undefined, 'portico.config.json'), {
      file: { path, name: 'portico.config.json' },
    });
  });

  test('the flag wins over the variable', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'a.ts'), '');
    const path = join(folder.path, 'a.ts');
    assert.deepEqual(findModule(folder.path, 'a.ts', 'b.ts'), { file: { path, name: 'a.ts' } });
  });

  test('a named module must be there and of a kind that can be loaded', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'config.yaml'), '');
    assert.deepEqual(findModule(folder.path, undefined, 'b.ts'), {
      problem: 'CONFIG names "b.ts", and there is no such file (looked for b.ts)',
    });
    assert.deepEqual(findModule(folder.path, '../b.ts', undefined), {
      problem: `--config names "../b.ts", and there is no such file (looked for ${join(folder.path, '../b.ts')})`,
    });
    assert.deepEqual(findModule(folder.path, 'config.yaml', undefined), {
      problem: '--config names "config.yaml"; a configuration module ends in .ts, .mts, .js, .mjs or .json',
    });
    assert.deepEqual(findModule(folder.path, undefined, ''), {
      problem: 'CONFIG is empty; unset it or name a file',
    });
    assert.ok('problem' in findModule(folder.path, 'a\u0000.ts', undefined));
  });

  test('paths are shown from the working folder when they lie inside', () => {
    assert.equal(displayPath('/a/b/c.ts', '/a'), 'b/c.ts');
    assert.equal(displayPath('/a/..b/c.ts', '/a'), '..b/c.ts');
    assert.equal(displayPath('/b/c.ts', '/a'), '/b/c.ts');
    assert.equal(displayPath('/a', '/a'), '/a');
  });
});

describe('module settings', () => {
  const read = (exported: object) => readModuleSettings({ ...exported }, 'portico.config.ts');

  test('settings stand nested by their keys', () => {
    const reading = read({
      host: '::1',
      interfaces: ['rest'],
      rest: { port: 9000 },
      management: { basePath: '/', include: 'health, env', springBootAdmin: { name: 'mine' } },
      webhook: { secret: 'a,b', port: undefined },
      shutdown: undefined,
    });
    assert.deepEqual(reading.problems, []);
    assert.deepEqual(Object.fromEntries([...reading.found].map(([key, { value }]) => [key, value])), {
      host: '::1',
      interfaces: ['rest'],
      'rest.port': 9000,
      'management.basePath': '/',
      'management.include': ['health', 'env'],
      'management.springBootAdmin.name': 'mine',
      'webhook.secret': ['a', 'b'],
    });
    assert.equal(reading.found.get('rest.port')?.origin, 'portico.config.ts: rest.port');
  });

  test('code is set aside', () => {
    const handlers = { ping: () => undefined };
    const reading = read({ webhook: { handlers } });
    assert.deepEqual([...reading.code], [['webhook.handlers', handlers]]);
    assert.deepEqual(reading.problems, []);
  });

  test('unknown keys are problems, with what is probably meant', () => {
    assert.deepEqual(
      read({ mangement: {}, rest: { prot: 1 }, webhook: { handler: {}, xylophone: 1 } }).problems,
      [
        'portico.config.ts has an unknown key "mangement"; did you mean management?',
        'portico.config.ts has an unknown key "rest.prot"; did you mean rest.port?',
        'portico.config.ts has an unknown key "webhook.handler"; did you mean webhook.handlers?',
        'portico.config.ts has an unknown key "webhook.xylophone"',
      ],
    );
  });

  test('dotted keys and deeper objects do not reach an option', () => {
    assert.deepEqual(read({ 'rest.port': 1, management: { 'base.path': '/x' } }).problems, [
      'portico.config.ts has an unknown key "rest.port"; write sections as objects: { rest: { port: 8000 } }',
      'portico.config.ts has an unknown key "management.base.path"; write sections as objects: { rest: { port: 8000 } }',
    ]);
    assert.equal(read({ 'rest.port': 1 }).found.size, 0);
  });

  test('sections within sections are read like others', () => {
    const { problems, found } = read({
      management: { springBootAdmin: { url: 'x', nmae: 'y', jvmMetrics: { deep: true } }, port: { deep: 1 } },
    });
    assert.deepEqual(problems, [
      'portico.config.ts: management.springBootAdmin.url must be an http or https URL, without a query',
      'portico.config.ts has an unknown key "management.springBootAdmin.nmae"; did you mean management.springBootAdmin.name?',
      'portico.config.ts: management.springBootAdmin.jvmMetrics must be true or false, not an object',
      'portico.config.ts: management.port must be a whole number from 0 to 65535, or unix:/path (of a socket, at most 103 bytes), not an object',
    ]);
    assert.equal(found.size, 0);
    assert.deepEqual(read({ management: { springBootAdmin: 'x' } }).problems, [
      'portico.config.ts: management.springBootAdmin must be an object, not a text',
    ]);
  });

  test('a section must be an object, and what stands there instead is not shown', () => {
    assert.deepEqual(read({ rest: 9000, webhook: 'hunter2', management: null, graphql: [] }).problems, [
      'portico.config.ts: rest must be an object, not 9000',
      'portico.config.ts: webhook must be an object, not a text',
      'portico.config.ts: management must be an object, not null',
      'portico.config.ts: graphql must be an object, not an array',
    ]);
    assert.equal(read({ rest: new Map([['port', 1]]) }).problems.length, 1);
    assert.equal(read({ rest: Promise.resolve({ port: 1 }) }).problems.length, 1);
  });

  test('values of the wrong type and empty ones are problems', () => {
    const { problems, broken } = read({
      host: '',
      rest: { port: '9000' },
      webhook: { secret: [] },
      log: { level: null },
      management: { password: 12345 },
    });
    assert.deepEqual(problems, [
      'portico.config.ts: host is empty; leave it out for the default (127.0.0.1)',
      'portico.config.ts: rest.port must be a whole number from 0 to 65535, or unix:/path (of a socket, at most 103 bytes), not "9000"',
      'portico.config.ts: webhook.secret must be one or more secrets separated by commas, none of them empty or with control characters',
      'portico.config.ts: log.level must be one of fatal, error, warn, info, debug, trace, silent, not null',
      `portico.config.ts: management.password must be ${expectedPassword}`,
    ]);
    assert.equal(broken.size, 5);
  });

  test('inherited keys are not followed, and an own __proto__ is an unknown key', () => {
    const inherited = Object.create({ host: '0.0.0.0', rest: { port: 1 } });
    assert.equal(readModuleSettings(inherited, 'x.ts').found.size, 0);
    assert.equal(read({ rest: Object.create({ port: 1 }) }).found.size, 0);
    const parsed = JSON.parse(
      '{"__proto__": {"host": "0.0.0.0"}, "rest": {"__proto__": {"port": 1}}, "constructor": 1}',
    );
    const reading = readModuleSettings(parsed, 'x.json');
    assert.equal(reading.found.size, 0);
    assert.deepEqual(reading.problems, [
      'x.json has an unknown key "__proto__"',
      'x.json has an unknown key "rest.__proto__"',
      'x.json has an unknown key "constructor"',
    ]);
  });

  test('an instance or a namespace is read like a plain object', () => {
    class Rest {
      readonly port = 9000;
    }
    assert.equal(read({ rest: new Rest() }).found.get('rest.port')?.value, 9000);
    assert.equal(
      read({ rest: Object.assign(Object.create(null), { port: 1 }) }).found.get('rest.port')?.value,
      1,
    );
  });
});

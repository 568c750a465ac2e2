import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { arch, release, type } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import Fastify from 'fastify';
import { temporaryFolder } from '../../../test/support/temporary-folder.ts';
import { addRoutes } from '../operations.ts';
import { infoEndpoint, nearestBuild } from './info.ts';
import { parseDuration } from './recent.ts';

type InfoOptions = Parameters<typeof infoEndpoint>[0];

describe('info', () => {
  const BUILD = { version: '1.2.3', artifact: 'portico', name: 'Portico' };
  const GIT = { branch: 'main', commit: { id: '0123abc', time: '2026-03-04T05:06:07.000Z' } };

  async function infoOf(options: Partial<InfoOptions>): Promise<Record<string, Record<string, unknown>>> {
    await using app = Fastify();
    addRoutes(app, infoEndpoint({ build: BUILD, ...options }).routes(app));
    return (await app.inject('/info')).json();
  }

  test('build and git unless told otherwise, and only what is known', async () => {
    assert.deepEqual(await infoOf({}), { build: BUILD });
    const build = { ...BUILD, group: 'org.example', time: '2026-01-01T00:00:00.000Z' };
    assert.deepEqual(await infoOf({ build, git: GIT }), { build, git: GIT });
  });

  test('git is looked for once, when somebody asks for it', async () => {
    let looked = 0;
    const git = async () => {
      looked++;
      return GIT;
    };
    await using app = Fastify();
    addRoutes(app, infoEndpoint({ build: BUILD, git, info: ['build', 'git', 'process'] }).routes(app));
    assert.equal(looked, 0);
    for (let i = 0; i < 3; i++) assert.deepEqual((await app.inject('/info')).json().git, GIT);
    assert.equal(looked, 1);
    assert.deepEqual(await infoOf({ git, info: ['build'] }), { build: BUILD });
    assert.deepEqual(await infoOf({ git: async () => undefined }), { build: BUILD });
    assert.equal(looked, 1);
  });

  test('each part can be chosen', async () => {
    assert.deepEqual(Object.keys(await infoOf({ git: GIT, info: ['git'] })), ['git']);
    assert.deepEqual(await infoOf({ git: GIT, info: ['build'] }), { build: BUILD });
    const { node, os } = await infoOf({ info: ['os', 'node'] });
    assert.deepEqual(os, { name: type(), version: release(), arch: arch() });
    assert.equal(node?.version, process.versions.node);
    assert.equal(node?.v8, process.versions.v8);
  });

  test('the process is as Actuator has it, at the moment of the question', async () => {
    const { process: shown = {} } = await infoOf({ info: ['process'] });
    const {
      pid,
      parentPid,
      owner,
      uptime,
      startTime,
      currentTime,
      timezone,
      locale,
      workingDirectory,
      cpus,
    } = shown;
    const { memory, ...rest } = shown;
    assert.deepEqual(
      { pid, parentPid, workingDirectory },
      {
        pid: process.pid,
        parentPid: process.ppid,
        workingDirectory: process.cwd(),
      },
    );
    for (const text of [owner, timezone, locale]) assert.match(String(text), /\w/);
    assert.ok(Number(cpus) >= 1);
    const started = Date.parse(String(startTime));
    assert.ok(Math.abs(started - performance.timeOrigin) < 1_000);
    const age = Date.parse(String(currentTime)) - started;
    assert.ok(Math.abs(age - Number(parseDuration(String(uptime)))) < 1_000, `${age} ${uptime}`);
    assert.deepEqual(Object.keys(rest).sort(), [
      'cpus',
      'currentTime',
      'locale',
      'owner',
      'parentPid',
      'pid',
      'startTime',
      'timezone',
      'uptime',
      'workingDirectory',
    ]);
    const { heap, nonHeap } = memory as Record<string, Record<string, number>>;
    for (const area of [heap, nonHeap]) {
      assert.deepEqual(Object.keys(area ?? {}), ['init', 'used', 'committed', 'max']);
      assert.ok(Number(area?.used) > 0 && Number(area?.committed) >= Number(area?.used));
    }
  });

  test('the process is looked at each time', async () => {
    await using app = Fastify();
    addRoutes(app, infoEndpoint({ build: BUILD, info: ['build', 'process'] }).routes(app));
    const uptime = async () => (await app.inject('/info')).json().process.uptime;
    assert.notEqual(await uptime(), await uptime());
  });
});

describe('nearest build', () => {
  test('the nearest package.json with a name above the program, then above the working folder', async () => {
    await using folder = await temporaryFolder();
    const at = (path: string) => join(folder.path, path);
    const write = async (path: string, text: string) => {
      await mkdir(dirname(at(path)), { recursive: true });
      await writeFile(at(path), text);
    };
    await write('shop/package.json', '{"name":"shop","version":"1.2.3"}');
    await write('shop/dist/package.json', '{"type":"module"}');
    await write('shop/dist/deep/main.js', '');
    await write('other/package.json', '{"name":"other"}');
    await write('other/bad/package.json', '{"name":');
    await write('alone/main.js', '');
    await symlink(at('shop/dist/deep/main.js'), at('alone/link.js'));
    const shop = { name: 'shop', artifact: 'shop', version: '1.2.3' };
    const other = { name: 'other', artifact: 'other', version: '0.0.0' };

    assert.deepEqual(nearestBuild(at('shop/dist/deep/main.js'), at('other')), shop);
    assert.deepEqual(nearestBuild(at('alone/link.js'), at('other')), shop);
    assert.deepEqual(nearestBuild(at('alone/main.js'), at('other/bad')), other);
    for (const program of ['', at('nowhere.js')]) {
      assert.deepEqual(nearestBuild(program, at('other')), other);
    }
  });
});

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { loadConfig } from 'portico';
import { temporaryFolder } from '../../test/support/temporary-folder.ts';
import { ConfigError } from './load.ts';
import { flagOf } from './options/option.ts';
import { optionKeys, optionOf } from './options/options.ts';

const planted = 'Zq7PlantedSecret';
const secretKeys = optionKeys.filter((key) => optionOf(key).secret);

/** The secret, with something that makes it a value that no option takes. */
const spoilt = fc
  .tuple(
    fc.constantFrom('', '-', '--', 'mysql://', ',', ',,', '\n', '\u0000', '\u009b', 'postgres://a b:', ' '),
    fc.constantFrom('', ',', '\n', '\u007f', ' x', ',,y', '"', '=1'),
  )
  .map(([before, after]) => `${before}${planted}${after}`);

/** Ways to bring a secret in by a source, right or by mistake. */
const sources: readonly ((
  secret: string,
  key: (typeof secretKeys)[number],
) => {
  readonly argv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly file?: string;
  readonly module?: string;
})[] = [
  (secret, key) => ({ argv: [`${flagOf(key)}=${secret}`] }),
  (secret, key) => ({ argv: [flagOf(key), secret] }),
  (secret, key) => ({ argv: [flagOf(key), 'first', secret, secret] }),
  (secret, key) => ({ argv: [`${flagOf(key)}x`, secret] }),
  (secret, key) => ({ argv: [`${flagOf(key).slice(0, -1)}=${secret}`] }),
  (secret, key) => ({ argv: [`${flagOf(key)}=${secret}`, flagOf(key), secret] }),
  (secret, key) => ({ env: { [optionOf(key).env]: secret } }),
  (secret, key) => ({ env: { [optionOf(key).env]: secret, [`${optionOf(key).env}_FILE`]: '/nowhere' } }),
  (secret) => ({ file: secret }),
  (secret, key) => ({ module: nested(key, JSON.stringify(secret)) }),
  (secret, key) => ({ module: nested(key, JSON.stringify([secret, 1])) }),
  (secret, key) => ({ module: nested(key, JSON.stringify({ [planted.slice(0, 3)]: secret })) }),
  // Quotes forgotten: no JSON.
  (secret, key) => ({ module: nested(key, secret) }),
  (secret, key) => ({ module: `{${JSON.stringify(key.split('.')[0])}: ${JSON.stringify(secret)}}` }),
  (secret) => ({ module: JSON.stringify(secret) }),
];

function nested(key: string, value: string): string {
  return key.split('.').reduceRight((inner, name) => `{"${name}": ${inner}}`, value);
}

test('no problem shows a secret, wherever it comes from and whatever is wrong with it', async () => {
  await using folder = await temporaryFolder();
  let refused = 0;
  const run = async (secret: string, key: (typeof secretKeys)[number], source: (typeof sources)[number]) => {
    const { argv = [], env = {}, file, module = '{}' } = source(secret, key);
    await writeFile(join(folder.path, 'portico.config.json'), module);
    const variables: Record<string, string> = { ...env };
    if (file !== undefined) {
      await writeFile(join(folder.path, 'secret'), file);
      variables[`${optionOf(key).env}_FILE`] = 'secret';
    }
    try {
      await loadConfig({ argv, env: variables, cwd: folder.path });
    } catch (error) {
      assert.ok(error instanceof ConfigError, String(error));
      assert.doesNotMatch(`${error.message}${error.stack}${String(error.cause)}`, new RegExp(planted));
      refused++;
    }
  };
  const property = fc.asyncProperty(spoilt, fc.constantFrom(...secretKeys), fc.constantFrom(...sources), run);
  await fc.assert(property, { numRuns: 1_500 });
  assert.ok(refused > 500, `only ${refused} were refused`);
});

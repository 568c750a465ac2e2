import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { flagOf } from '../config/options/option.ts';
import { optionKeys } from '../config/options/options.ts';
import { didYouMean, nearest } from './suggest.ts';

const flags = optionKeys.map(flagOf);

test('the nearest candidate is suggested', () => {
  assert.equal(nearest('--rest-prot', flags), '--rest-port');
  assert.equal(nearest('--webhook-secert', flags), '--webhook-secret');
  assert.equal(nearest('--managment-port', flags), '--management-port');
  assert.equal(nearest('--REST-PORT', flags), '--rest-port');
  assert.equal(nearest('hlep', ['help']), 'help');
  assert.equal(nearest('serv', ['serve', 'help']), 'serve');
});

test('nothing is suggested when nothing is near', () => {
  assert.equal(nearest('--verbose', flags), undefined);
  assert.equal(nearest('', flags), undefined);
  assert.equal(nearest('x', []), undefined);
  assert.equal(didYouMean('--verbose', flags), '');
});

test('one edit away from a flag is always close enough', () => {
  const edit = fc.record({
    flag: fc.constantFrom(...flags),
    at: fc.nat(),
    kind: fc.constantFrom('remove', 'insert', 'replace', 'swap'),
  });
  const apply = ({ flag, at, kind }: { flag: string; at: number; kind: string }): string => {
    const letters = [...flag];
    const index = at % (letters.length - 1);
    const [first = '', second = ''] = letters.slice(index, index + 2);
    if (kind === 'remove') letters.splice(index, 1);
    else if (kind === 'insert') letters.splice(index, 0, '0');
    else if (kind === 'replace') letters.splice(index, 1, '0');
    else letters.splice(index, 2, second, first);
    return letters.join('');
  };
  fc.assert(
    fc.property(edit, (given) => {
      // Another flag may be as near (--rest-port and --host-port would be), so only that there is one.
      assert.notEqual(nearest(apply(given), flags), undefined);
      assert.equal(nearest(apply(given), [given.flag]), given.flag);
    }),
  );
});

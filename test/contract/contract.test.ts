import { after, before, describe, test } from 'node:test';
import { inFull } from '../support/proof-settings.ts';
import { checks } from './catalogue.ts';
import type { Check, Subject } from './check.ts';
import { type Cell, cells, fits, openSubject } from './subject.ts';

const isFirst = ({ needs }: Check) => needs?.place === 'first';

/** Checks of one cell that share a service: those with the same settings and module, in the order that they need. */
function groups(cell: Cell): readonly (readonly Check[])[] {
  const shared = new Map<string, Check[]>();
  for (const check of checks) {
    if (!fits(check, cell)) continue;
    const { env, module, place } = check.needs ?? {};
    const key = JSON.stringify([env, module, place === 'apart']);
    const group = shared.get(key);
    if (group === undefined) shared.set(key, [check]);
    else if (place === 'first') group.splice(group.findLastIndex(isFirst) + 1, 0, check);
    else group.push(check);
  }
  return [...shared.values()];
}

for (const cell of cells) {
  if (cell.inFull && !inFull) continue;
  const place = `[${cell.transport}, ${cell.database}]`;
  for (const group of groups(cell)) {
    describe(`${place} ${group[0]?.id} and its like`, () => {
      let subject: (Subject & AsyncDisposable) | undefined;
      before(async () => {
        subject = await openSubject(cell, group[0]?.needs ?? {});
      });
      after(() => subject?.[Symbol.asyncDispose]());
      for (const check of group) {
        test(`${check.id} ${place} ${check.title} (${check.heading})`, async () => {
          if (subject === undefined) throw new Error('the service did not start');
          await check.run(subject);
        });
      }
    });
  }
}

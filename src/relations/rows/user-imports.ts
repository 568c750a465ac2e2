import { isRecord } from '../../core/json.ts';
import type { ImportTarget } from '../import.ts';
import type { ReadRecord, Refusal } from '../import-readers.ts';
import { USER_COLUMNS } from '../relation.ts';
import { userProblems } from '../user.ts';
import { EMAIL_TAKEN, MAX_LINE } from '../user-stores.ts';
import { listedFaults, toldFaults } from './faults.ts';
import { type NewRow, rowImports } from './import-rows.ts';
import type { RowFault, RowStore } from './rows.ts';

/** Imports of users with the columns of a declaration. */
export function userRowImports(store: RowStore): ImportTarget<NewRow, number> {
  const rows = rowImports(store, undefined);
  const { columns } = store.relation;
  const names = new Set(columns.map(({ name }) => name));
  const [name, email] = ['name', 'email'].map((each) => columns.findIndex((column) => column.name === each));

  /** Adds the faults that only users have, which replace those of their columns. */
  function checked(read: ReadRecord<NewRow>, user: unknown): ReadRecord<NewRow> {
    const own = userProblems(user);
    const others = 'row' in read ? [] : faultsOf(read).filter(({ pointer }) => !BASE.has(pointer));
    const faults: readonly RowFault[] = [...own, ...others];
    if (faults.length === 0) return read;
    return { code: 'INVALID_USER', reason: toldFaults(faults), errors: listedFaults(faults) };
  }

  return {
    ...rows,
    name: 'users',
    maxLine: MAX_LINE,
    read(given) {
      // As in the body of a create, other members are ignored.
      const known = isRecord(given)
        ? Object.fromEntries(Object.entries(given).filter(([member]) => names.has(member)))
        : given;
      return checked(rows.read(known), given);
    },
    readHeader(header) {
      const read = rows.readHeader(header.map((each) => (isBase(each) ? each.toLowerCase() : each)));
      return (fields) => {
        const found = read(fields);
        if (!('row' in found)) return checked(found, VALID);
        const { values } = found.row;
        return checked(found, { name: values[name ?? -1], email: values[email ?? -1] });
      };
    },
    async store(given, checkpoint) {
      const stored = await rows.store(given, checkpoint);
      return stored.map((each) => ('id' in each ? { id: Number(each.id[0]) } : refusalOf(each)));
    },
    async storeAll(given, checkpoint) {
      const stored = await rows.storeAll(given, checkpoint);
      if ('ids' in stored) return { ids: stored.ids.map(([id]) => Number(id)) };
      return { refused: stored.refused.map(([row, refusal]) => [row, refusalOf(refusal)] as const) };
    },
  };
}

const BASE: ReadonlySet<string> = new Set(['#', '#/name', '#/email']);
const VALID = { name: 'n', email: 'e@x' };

/** The faults that imports of rows find. */
function faultsOf({ errors = [] }: Refusal): readonly RowFault[] {
  return errors as readonly RowFault[];
}

function isBase(column: string): boolean {
  return USER_COLUMNS.includes(column.toLowerCase());
}

function refusalOf(refusal: Refusal): Refusal {
  const isEmail = refusal.code === 'TAKEN' && faultsOf(refusal).some(({ pointer }) => pointer === '#/email');
  return isEmail ? EMAIL_TAKEN : refusal;
}

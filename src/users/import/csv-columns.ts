import { quote } from '../../core/quote.ts';
import { didYouMean } from '../../core/suggest.ts';
import { USER_FIELDS } from '../user-list.ts';
import { ImportError } from './import-error.ts';

/** Where the fields of a user are in a record. */
export interface CsvColumns {
  readonly name: number;
  readonly email: number;
  readonly count: number;
}

/** Reads the header of a CSV: `name` and `email` in any order and case; an `id`, as exports have it, is passed over. Throws ImportError. */
export function readColumns(header: readonly string[]): CsvColumns {
  const names = header.map((name) => name.trim().toLowerCase());
  const known: readonly string[] = USER_FIELDS;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw wrong(
      `There is no column ${quote(unknown)}${didYouMean(unknown, known)}; there are id, name and email`,
    );
  }
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw wrong(`The column ${quote(twice)} is there twice`);
  for (const needed of ['name', 'email']) {
    if (!names.includes(needed)) throw wrong(`The first line names no column ${quote(needed)}`);
  }
  return { name: names.indexOf('name'), email: names.indexOf('email'), count: names.length };
}

function wrong(problem: string): ImportError {
  return new ImportError('INVALID_IMPORT', problem, 1);
}

import { type OrderField, USER_FIELDS, type UserField } from '../user-list.ts';
import { invalidParameter } from './refusals.ts';

/** Reads an order such as `name,-id`; `-` is descending. Its last field is the id, in the direction of the one before. */
export function readSort(text: string): readonly OrderField[] {
  const order: OrderField[] = [];
  for (const name of text.split(',')) {
    const descending = name.startsWith('-');
    const field = (descending ? name.slice(1) : name) as UserField;
    if (!USER_FIELDS.includes(field) || order.some((each) => each.field === field)) {
      throw invalidParameter(
        'sort',
        `each of ${USER_FIELDS.join(', ')} at most once, with commas between and "-" for descending`,
      );
    }
    order.push({ field, descending });
  }
  // No two users have the same id, so what follows it decides nothing.
  const id = order.findIndex(({ field }) => field === 'id');
  if (id !== -1) return order.slice(0, id + 1);
  return [...order, { field: 'id', descending: order.at(-1)?.descending ?? false }];
}

import { keyOf, type Relation, type Row } from '../../data/relations.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { say } from '../../parts/toasts.tsx';
import { RowFields, useRowForm } from './row-form.tsx';

/** Creates a row; some of its columns may be given. */
export function NewRow({
  relation,
  relations,
  given = {},
  onClose,
  onCreated,
}: {
  relation: Relation;
  relations: readonly Relation[];
  given?: Row;
  onClose: () => void;
  onCreated: () => void;
}) {
  const form = useRowForm(relation, relations, given);
  const create = async () => {
    const row = await form.save();
    if (row === undefined) return;
    say('good', `${relation.one} ${decodeURIComponent(keyOf(relation, row))} is created`);
    onCreated();
  };
  return (
    <Dialog title={`New ${relation.one}`} submit="Create" onSubmit={() => void create()} onClose={onClose}>
      <RowFields form={form} />
    </Dialog>
  );
}

import { useState } from 'react';
import { useStream } from '../../data/api.ts';
import { askRows, labelOf, type Relation, type Row, RowsError, rowLink } from '../../data/relations.ts';
import { goTo } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Card, Empty, Notice, Page, Segments, Waiting } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';
import { NewRow } from './new-row.tsx';
import { RowAccess } from './row-access.tsx';
import { RowFields, readRow, type StoredRow, useRowForm } from './row-form.tsx';
import { RowTable } from './row-table.tsx';

interface RowPageProps {
  readonly relation: Relation;
  readonly relations: readonly Relation[];
  /** The key as in paths. */
  readonly rowKey: string;
}

/** A row: its form, and the rows that refer to it. */
export function RowPage(props: RowPageProps) {
  const { relation, rowKey } = props;
  const { value, error } = useData(rowKey, undefined, (key, signal) => readRow(relation, key, signal));
  if (value === undefined || error !== undefined) {
    return (
      <Page title={`${relation.one} ${shownKey(rowKey)}`} about={<Back relation={relation} />}>
        <Card>
          {error?.status === 404 ? (
            <Empty icon="search" title="There is no such row">
              It may have been removed.
            </Empty>
          ) : (
            <Waiting error={error} what="The row" />
          )}
        </Card>
      </Page>
    );
  }
  return <Shown {...props} stored={value} />;
}

function shownKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

function Back({ relation: { name } }: { relation: Relation }) {
  return (
    <a href={rowLink(name)}>
      <Icon name="back" /> All {name}
    </a>
  );
}

function Shown({ relation, relations, rowKey, stored }: RowPageProps & { readonly stored: StoredRow }) {
  const form = useRowForm(relation, relations, stored);
  const [isRemoving, setRemoving] = useState(false);
  const { row } = form.stored ?? stored;
  const later = useLater(form, rowKey);
  const label = labelOf(relation, row);

  const save = async () => {
    const saved = await form.save();
    if (saved === undefined) return;
    say('good', `${relation.one} ${shownKey(rowKey)} is stored`);
  };
  return (
    <Page
      title={`${relation.one} ${shownKey(rowKey)}`.slice(0, 200)}
      about={
        <>
          <Back relation={relation} />
          {label !== '' && <span className="break"> · {label.slice(0, 200)}</span>}
        </>
      }
      actions={
        relation.isWritable && (
          <button type="button" className="button danger" onClick={() => setRemoving(true)}>
            Delete
          </button>
        )
      }
    >
      {later === 'deleted' && <Notice tone="bad">Another writer has removed this row.</Notice>}
      {later === 'changed' && (
        <Notice tone="warn">
          Another writer has changed this row since it was read.{' '}
          <button
            type="button"
            className="button small"
            onClick={() => void readRow(relation, rowKey).then(form.reset, () => {})}
          >
            Read again and drop what is typed
          </button>
        </Notice>
      )}
      <Card>
        <form
          className="row-form"
          aria-label={`The columns of ${relation.one} ${shownKey(rowKey)}`}
          onSubmit={(event) => {
            event.preventDefault();
            if (form.isChanged) void save();
          }}
        >
          <RowFields form={form} />
          {relation.isWritable && (
            <div className="actions">
              <button type="submit" className="button primary" disabled={!form.isChanged}>
                Save
              </button>
              <button
                type="button"
                className="button"
                disabled={!form.isChanged}
                onClick={() => form.reset(form.stored ?? stored)}
              >
                Undo changes
              </button>
            </div>
          )}
        </form>
      </Card>
      {relation.inverses.length > 0 && <Inverses relation={relation} relations={relations} row={row} />}
      {relation.isRuled && <RowAccess relation={relation} rowKey={rowKey} />}
      {isRemoving && (
        <Remove relation={relation} rowKey={rowKey} form={form} onClose={() => setRemoving(false)} />
      )}
    </Page>
  );
}

/** What others have done to the row that a form shows; a form without changes follows them. */
function useLater(form: ReturnType<typeof useRowForm>, rowKey: string): 'changed' | 'deleted' | undefined {
  const { relation } = form;
  const [event, setEvent] = useState<{ readonly type: string; readonly row: Row }>();
  const take = (each: { readonly type: string; readonly key: string; readonly row: Row }) => {
    if (each.key !== rowKey) return;
    setEvent(each);
    if (each.type === 'updated' && !form.isChanged) void readRow(relation, rowKey).then(form.reset, () => {});
  };
  const { name, one, isFollowed } = relation;
  useStream(isFollowed ? `rows/${encodeURIComponent(name)}?lastEventId=` : undefined, {
    [`${one}.updated`]: take,
    [`${one}.deleted`]: take,
  });
  const shown = form.stored?.row;
  if (event?.type === 'deleted') return 'deleted';
  const isSame =
    event === undefined ||
    relation.columns.every(
      ({ name: each }) => JSON.stringify(event.row[each]) === JSON.stringify(shown?.[each]),
    );
  return isSame || !form.isChanged ? undefined : 'changed';
}

/** The rows of other relations that refer to a row, a tab for each reference. */
function Inverses({
  relation,
  relations,
  row,
}: {
  relation: Relation;
  relations: readonly Relation[];
  row: Row;
}) {
  const known = relation.inverses.flatMap((inverse) => {
    const other = relations.find(({ name }) => name === inverse.relation);
    return other === undefined ? [] : [{ ...inverse, other }];
  });
  const [picked, setPicked] = useState(known[0]?.name ?? '');
  const [query, setQuery] = useState<Readonly<Record<string, string>>>({});
  const [isNew, setNew] = useState(false);
  const [version, setVersion] = useState(0);
  const inverse = known.find(({ name }) => name === picked);
  if (inverse === undefined) return null;
  const fixed = Object.fromEntries(
    inverse.there.map((column, i) => [column, String(row[inverse.here[i] ?? ''])] as const),
  );
  return (
    <section className="inverses" aria-label="Rows that refer to this one">
      <div className="section-head">
        <Segments
          label="Rows that refer to this one"
          options={known.map(({ name }) => [name, name])}
          value={picked}
          onPick={(name) => {
            setPicked(name);
            setQuery({});
          }}
        />
        {inverse.other.isWritable && (
          <button type="button" className="button" onClick={() => setNew(true)}>
            New {inverse.other.one}
          </button>
        )}
      </div>
      <RowTable
        key={picked}
        relation={inverse.other}
        relations={relations}
        query={query}
        fixed={fixed}
        version={version}
        onQuery={setQuery}
      />
      {isNew && (
        <NewRow
          relation={inverse.other}
          relations={relations}
          given={fixed}
          onClose={() => setNew(false)}
          onCreated={() => {
            setNew(false);
            setVersion((before) => before + 1);
          }}
        />
      )}
    </section>
  );
}

/** Asks before a row is removed, and removes it only if it is still the one that is shown. */
function Remove({
  relation,
  rowKey,
  form,
  onClose,
}: {
  relation: Relation;
  rowKey: string;
  form: ReturnType<typeof useRowForm>;
  onClose: () => void;
}) {
  const [problem, setProblem] = useState('');
  const remove = async () => {
    try {
      const headers = { 'if-match': form.stored?.etag ?? '' };
      await askRows(`${encodeURIComponent(relation.name)}/${rowKey}`, { method: 'DELETE', headers });
      say('good', `${relation.one} ${shownKey(rowKey)} is deleted`);
      goTo(rowLink(relation.name));
    } catch (error) {
      const isOther = error instanceof RowsError && error.status === 412;
      setProblem(
        isOther
          ? 'Another writer has changed this row. Close this and look at it again.'
          : (error as Error).message,
      );
    }
  };
  return (
    <Dialog
      title={`Delete ${relation.one} ${shownKey(rowKey).slice(0, 80)}?`}
      submit="Delete"
      tone="danger"
      onSubmit={() => void remove()}
      onClose={onClose}
    >
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      <p>
        It cannot be undone. Rows that refer to it may go with it, or prevent it, as their relations declare.
      </p>
    </Dialog>
  );
}

import { useState } from 'react';
import { askRows, type Relation } from '../../data/relations.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice } from '../../parts/filters.tsx';
import { Notice } from '../../parts/parts.tsx';

const FORMATS = [
  ['csv', 'CSV'],
  ['ndjson', 'NDJSON'],
] as const;
const TYPES: Readonly<Record<string, string>> = { csv: 'text/csv', ndjson: 'application/x-ndjson' };

/** Saves the rows that match filters in a file. */
export function ExportRows({
  relation,
  filters,
  onClose,
}: {
  relation: Relation;
  filters: Readonly<Record<string, string>>;
  onClose: () => void;
}) {
  const [format, setFormat] = useState<string>('csv');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      const path = `${encodeURIComponent(relation.name)}?${new URLSearchParams(filters)}`;
      const response = await askRows(path, { headers: { accept: TYPES[format] ?? '' } });
      // The browser keeps a large file on the disk.
      const url = URL.createObjectURL(await response.blob());
      const link = document.createElement('a');
      link.href = url;
      link.download = `${relation.name}.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      onClose();
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Export ${relation.name}`}
      submit="Export"
      isDisabled={isBusy}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      <Choice label="Format" options={FORMATS} value={format} onPick={setFormat} />
      <p>
        {Object.keys(filters).length === 0 ? 'All rows' : 'The rows that match the filters'}, with all
        columns.
      </p>
      {isBusy && <progress aria-label="The export" />}
    </Dialog>
  );
}

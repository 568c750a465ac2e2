import { useState } from 'react';
import { askRows, type Relation, RowsError } from '../../data/relations.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Notice } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';

/** A line of the report of an import: a refused one, or the totals at the end. */
interface Reported {
  readonly line?: number;
  readonly reason?: string;
  readonly created?: number;
  readonly refused?: number;
}

interface Report {
  readonly refused: readonly Reported[];
  readonly created: number;
}

/** Refused lines that are shown. */
const MAX_SHOWN = 100;
/** Larger files are imported without a preview, line by line. */
const MAX_CHECKED = 16 * 1024 * 1024;

/** Imports rows of a file, after a preview of the lines that would be refused. */
export function ImportRows({
  relation,
  onClose,
  onImported,
}: {
  relation: Relation;
  onClose: () => void;
  onImported: () => void;
}) {
  const [file, setFile] = useState<File>();
  const [preview, setPreview] = useState<Report>();
  const [done, setDone] = useState<Report>();
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [isRefused, setRefused] = useState(false);
  const isLarge = isRefused || (file !== undefined && file.size > MAX_CHECKED);

  const ask = async (isDry: boolean) => {
    if (file === undefined) return;
    setBusy(true);
    setProblem('');
    try {
      const report = await send(relation, file, isDry);
      if (isDry) setPreview(report);
      else {
        setDone(report);
        say(report.refused.length === 0 ? 'good' : 'warn', `${counted(report.created)} imported`);
      }
    } catch (error) {
      // A dry run takes as many rows as one transaction.
      if (isDry && error instanceof RowsError && error.code === 'IMPORT_TOO_LARGE') setRefused(true);
      else setProblem((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  const pick = (picked: File | undefined) => {
    setFile(picked);
    setRefused(false);
    setPreview(undefined);
    setDone(undefined);
    setProblem('');
  };
  const isChecked = preview !== undefined || isLarge;
  const shown = done ?? preview;
  const close = done === undefined ? onClose : onImported;
  const words = isChecked
    ? preview === undefined || preview.refused.length === 0
      ? 'Import'
      : `Import ${counted(preview.created)} of ${(preview.created + preview.refused.length).toLocaleString('en')}`
    : 'Check';
  return (
    <Dialog
      title={`Import ${relation.name}`}
      submit={done === undefined ? words : undefined}
      isDisabled={file === undefined || isBusy || (preview !== undefined && preview.created === 0)}
      cancel={done === undefined ? 'Cancel' : 'Close'}
      onSubmit={() => void ask(!isChecked)}
      onClose={close}
    >
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      <label className="field">
        <span>
          A file <small>NDJSON, or CSV that names the columns in its first line</small>
        </span>
        <input
          type="file"
          accept=".csv,.ndjson,.jsonl,text/csv,application/x-ndjson"
          onChange={({ currentTarget }) => pick((currentTarget as unknown as HTMLInputElement).files?.[0])}
        />
      </label>
      {isBusy && <progress aria-label="The import" />}
      {isLarge && done === undefined && (
        <Notice tone="warn">
          This file is too large to be checked before. Its lines are imported one by one.
        </Notice>
      )}
      {shown !== undefined && (
        <Notice tone={shown.refused.length === 0 ? 'good' : 'warn'}>
          {done === undefined
            ? `${counted(shown.created)} can be imported`
            : `${counted(shown.created)} imported`}
          {shown.refused.length > 0 && `, ${shown.refused.length.toLocaleString('en')} refused`}.
        </Notice>
      )}
      {shown !== undefined && shown.refused.length > 0 && (
        <DataTable
          label="Refused lines"
          rows={shown.refused.slice(0, MAX_SHOWN)}
          keyOf={({ line = 0 }) => line}
          columns={[
            { title: 'Line', className: 'number', isRowHead: true, cell: ({ line }) => line },
            { title: 'Why', className: 'break', cell: ({ reason = '' }) => reason.slice(0, 500) },
          ]}
        />
      )}
      {shown !== undefined && shown.refused.length > MAX_SHOWN && (
        <p className="quiet">The first {MAX_SHOWN} refused lines are shown.</p>
      )}
    </Dialog>
  );
}

const counted = (rows: number) => `${rows.toLocaleString('en')} ${rows === 1 ? 'row' : 'rows'}`;

/** Sends a file; a dry run stores nothing. The service reads it as it comes, so that a large one takes no memory here. */
async function send({ name }: Relation, file: File, isDry: boolean): Promise<Report> {
  const isJson =
    /\.(?:ndjson|jsonl?)$/i.test(file.name) || (await file.slice(0, 64).text()).trimStart().startsWith('{');
  const response = await askRows(`${encodeURIComponent(name)}${isDry ? '?dryRun=true' : ''}`, {
    method: 'POST',
    headers: {
      'content-type': isJson ? 'application/x-ndjson' : 'text/csv',
      accept: 'application/x-ndjson',
      prefer: 'return=minimal',
    },
    body: file,
  });
  const refused: Reported[] = [];
  let created = 0;
  let stopped: string | undefined = 'The service stopped before the end of the file';
  for (const text of (await response.text()).split('\n')) {
    if (text === '') continue;
    const line = JSON.parse(text) as Reported & { readonly stopped?: boolean };
    if (line.created !== undefined) {
      created = line.created;
      stopped = undefined;
    } else if (line.stopped === true) stopped = line.reason;
    else refused.push(line);
  }
  if (stopped !== undefined) throw new Error(stopped);
  return { refused, created };
}

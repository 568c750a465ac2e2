import { useId } from 'react';
import type { Field, Reference, Relation } from '../../data/relations.ts';
import { Choice } from '../../parts/filters.tsx';
import { ReferenceField } from './reference-field.tsx';

/** What a form says of a column: a value as text, null, or nothing (`undefined`). */
export type Draft = string | null | undefined;

/** Texts of more characters get several lines. */
const LONG = 250;
const NUMBERS = ['integer', 'bigint', 'decimal', 'number', 'serial'];

/** A field of a form, by the type of its column. */
export function ValueField({
  column,
  value,
  faults,
  isNew,
  reference,
  onChange,
}: {
  column: Field;
  value: Draft;
  faults: readonly string[];
  /** Whether a column without a value gets its default. */
  isNew: boolean;
  reference: { readonly own: Reference; readonly target: Relation } | undefined;
  onChange: (value: Draft) => void;
}) {
  const id = useId();
  const hint = hintOf(column, isNew);
  const described = { 'aria-describedby': `${id}-faults`, 'aria-invalid': faults.length > 0 };
  // An empty field of these types says nothing, or null.
  const take = (text: string) =>
    onChange(text === '' ? (isNew ? undefined : column.nullable ? null : '') : text);
  return (
    <div className="row-field">
      {reference !== undefined ? (
        <ReferenceField
          label={column.name}
          hint={hint}
          reference={reference}
          value={value ?? ''}
          onPick={take}
        />
      ) : (
        inputOf({ column, value, hint, isNew, described, onChange, take })
      )}
      {column.kind === 'text' && column.nullable && (
        <label className="check">
          <input
            type="checkbox"
            checked={value === null}
            onChange={({ currentTarget }) => onChange(currentTarget.checked ? null : isNew ? undefined : '')}
          />
          null<span className="unseen"> in {column.name}</span>
        </label>
      )}
      <div id={`${id}-faults`} className="faults">
        {faults.map((fault) => (
          <p key={fault} className="error-text">
            {fault}
          </p>
        ))}
      </div>
    </div>
  );
}

function hintOf({ kind, nullable, default: missing, max }: Field, isNew: boolean): string {
  const units: Readonly<Record<string, string>> = { timestamp: 'UTC', bytes: 'base64', json: 'JSON' };
  return [
    units[kind] ?? kind,
    ...(kind === 'text' && max !== undefined ? [`up to ${Number(max).toLocaleString('en')} characters`] : []),
    ...(isNew && missing !== null ? [`default ${missing.slice(0, 40)}`] : []),
    ...(nullable ? ['may be null'] : isNew && missing === null && kind !== 'serial' ? ['required'] : []),
  ].join(', ');
}

interface InputParts {
  readonly column: Field;
  readonly value: Draft;
  readonly hint: string;
  readonly isNew: boolean;
  readonly described: Readonly<Record<string, unknown>>;
  readonly onChange: (value: Draft) => void;
  readonly take: (text: string) => void;
}

function inputOf({ column, value, hint, isNew, described, onChange, take }: InputParts) {
  const { name, kind, nullable, default: missing, values = [] } = column;
  const title = (
    <span>
      {name} <small>{hint}</small>
    </span>
  );
  const hasNothing = nullable || (isNew && missing !== null);
  switch (kind) {
    case 'boolean':
      if (!hasNothing)
        return (
          <label className="check">
            <input
              type="checkbox"
              checked={value === 'true'}
              {...described}
              onChange={({ currentTarget }) => onChange(String(currentTarget.checked))}
            />
            {name}
          </label>
        );
      return (
        <Choice
          label={name}
          options={optionsOf(column, ['true', 'false'], isNew)}
          value={value ?? ''}
          onPick={take}
        />
      );
    case 'enum':
      return (
        <Choice label={name} options={optionsOf(column, values, isNew)} value={value ?? ''} onPick={take} />
      );
    case 'date':
      return (
        <label className="field">
          {title}
          <input
            type="date"
            min="0001-01-01"
            max="9999-12-31"
            value={value ?? ''}
            {...described}
            onChange={({ currentTarget }) => take(currentTarget.value)}
          />
        </label>
      );
    case 'timestamp':
      return (
        <label className="field">
          {title}
          <input
            type="datetime-local"
            step="0.001"
            max="9999-12-31T23:59:59.999"
            value={(value ?? '').replace(/Z$/, '')}
            {...described}
            onChange={({ currentTarget }) => take(momentOf(currentTarget.value))}
          />
        </label>
      );
    case 'json':
      return (
        <label className="field">
          {title}
          <textarea
            value={value ?? ''}
            spellCheck={false}
            {...described}
            onChange={({ currentTarget }) => take(currentTarget.value)}
          />
        </label>
      );
    case 'bytes':
      return (
        <>
          <label className="field">
            {title}
            <textarea
              value={value ?? ''}
              spellCheck={false}
              {...described}
              onChange={({ currentTarget }) => take(currentTarget.value.replaceAll(/\s/g, ''))}
            />
          </label>
          <label className="field">
            <span>A file for {name}</span>
            <input type="file" onChange={({ currentTarget }) => void fileIn(currentTarget).then(take)} />
          </label>
        </>
      );
    case 'text': {
      const isLong = Number(column.max ?? 0) > LONG || (value ?? '').includes('\n');
      const shared = {
        value: value ?? '',
        placeholder: value === null ? 'null' : undefined,
        ...described,
        onChange: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
          onChange(currentTarget.value),
      };
      return isLong ? (
        <label className="field">
          {title}
          <textarea className="plain" {...shared} />
        </label>
      ) : (
        <label className="field">
          {title}
          <input type="text" {...shared} />
        </label>
      );
    }
    default:
      return (
        <label className="field">
          {title}
          <input
            type="text"
            inputMode={NUMBERS.includes(kind) ? 'decimal' : undefined}
            autoComplete="off"
            value={value ?? ''}
            placeholder={value === null ? 'null' : undefined}
            {...described}
            onChange={({ currentTarget }) => take(currentTarget.value)}
          />
        </label>
      );
  }
}

/** The values that a column may have, and the option of none. */
function optionsOf({ nullable, default: missing }: Field, values: readonly string[], isNew: boolean) {
  const nothing = isNew && missing !== null ? `default: ${missing}` : nullable ? 'null' : 'choose one';
  return [['', nothing] as const, ...values.map((each) => [each, each] as const)];
}

/** A time of the field, which leaves out seconds that are 0, in the format of rows. */
function momentOf(local: string): string {
  if (local === '') return '';
  return `${local.length === 16 ? `${local}:00` : local}Z`;
}

/** The contents of the chosen file in base64. */
async function fileIn(input: { readonly value: string }): Promise<string> {
  const [file] = (input as unknown as HTMLInputElement).files ?? [];
  if (file === undefined) return '';
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 8_192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(text);
}

/** A value of a row as the form has it. */
export function draftOf({ kind }: Field, value: unknown): Draft {
  if (value === null || value === undefined) return null;
  if (kind === 'json') return JSON.stringify(value, null, 2);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The value of a field as JSON. Throws SyntaxError if that of a JSON column cannot be parsed. */
export function jsonOf({ kind }: Field, draft: string | null): string {
  if (draft === null) return 'null';
  switch (kind) {
    case 'json':
      JSON.parse(draft);
      return draft;
    case 'boolean':
      return draft;
    case 'serial':
    case 'integer':
    case 'number': {
      const text = draft.trim();
      // The service refuses any other text with a reason.
      return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(text) ? text : JSON.stringify(draft);
    }
    case 'text':
      return JSON.stringify(draft);
    default:
      return JSON.stringify(draft.trim());
  }
}

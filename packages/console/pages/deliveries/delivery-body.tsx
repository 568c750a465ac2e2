import { useMemo, useState } from 'react';
import type { DeliveryView } from '../../data/deliveries.ts';
import { JsonTree } from '../../parts/json-tree.tsx';
import { Empty, Notice, Segments } from '../../parts/parts.tsx';

type Form = 'tree' | 'fields' | 'text' | 'bytes';

const TITLES: Readonly<Record<Form, string>> = {
  tree: 'Tree',
  fields: 'Form',
  text: 'Text',
  bytes: 'Bytes',
};

/** Maximum number of bytes shown. */
const MAX_BYTES = 4_096;

/** The body of a delivery in the views that suit it. Its content is always shown as text. */
export function DeliveryBody({ delivery }: { delivery: DeliveryView }) {
  const forms = useMemo(() => formsOf(delivery), [delivery]);
  const [picked, setPicked] = useState<Form>();
  const kinds = Object.keys(forms) as readonly Form[];
  const shown = picked !== undefined && picked in forms ? picked : kinds[0];
  if (shown === undefined) {
    return (
      <Empty icon="lock" title="The body is not shown">
        MANAGEMENT_SHOW_DETAILS hides the bodies of deliveries.
      </Empty>
    );
  }
  return (
    <div className="card-body">
      <Segments
        label="How the body is shown"
        options={kinds.map((kind) => [kind, TITLES[kind]])}
        value={shown}
        onPick={(kind) => setPicked(kind as Form)}
      />
      {delivery.bodyTruncated === true && (
        <Notice tone="quiet">The body is longer; "portico deliveries show" has all of it.</Notice>
      )}
      <div className="body">
        <Shown form={shown} forms={forms} />
      </div>
    </div>
  );
}

interface Forms {
  readonly tree?: unknown;
  readonly fields?: readonly (readonly [string, string])[];
  readonly text?: string;
  readonly bytes?: Uint8Array;
}

function formsOf({ bodyBase64, contentType }: DeliveryView): Forms {
  if (bodyBase64 === undefined) return {};
  const bytes = Uint8Array.from(atob(bodyBase64), (sign) => sign.charCodeAt(0));
  const text = textOf(bytes);
  if (text === undefined) return { bytes };
  const isForm = contentType?.toLowerCase().startsWith('application/x-www-form-urlencoded') === true;
  const json = isForm ? undefined : jsonOf(text);
  return { ...json, ...(isForm && { fields: [...new URLSearchParams(text)] }), text, bytes };
}

function jsonOf(text: string): { readonly tree: unknown } | undefined {
  try {
    return { tree: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    // A truncated body may end inside a character.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return undefined;
  }
}

function Shown({ form, forms }: { form: Form; forms: Forms }) {
  switch (form) {
    case 'tree':
      return <JsonTree value={forms.tree} />;
    case 'fields':
      return (
        <dl className="facts">
          {forms.fields?.map(([name, value], i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a form may repeat a name, and its order is fixed.
            <div key={i}>
              <dt>{name}</dt>
              <dd className="break mono">{value}</dd>
            </div>
          ))}
        </dl>
      );
    case 'text':
      return <pre className="wrap">{forms.text}</pre>;
    case 'bytes':
      return <pre>{hexOf(forms.bytes ?? new Uint8Array())}</pre>;
  }
}

function hexOf(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, MAX_BYTES); at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
    rows.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(47)}  ${text}`);
  }
  if (bytes.length > MAX_BYTES) rows.push(`… ${bytes.length - MAX_BYTES} more bytes`);
  return rows.join('\n');
}

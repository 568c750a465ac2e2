import { useMemo, useState } from 'react';
import { useAbout } from '../data/about.ts';
import { act, useLive } from '../data/api.ts';
import { type Action, type DeliveryRow, isActionable, statusTone } from '../data/deliveries.ts';
import { formatBytes, formatMoment, formatMs } from '../data/format.ts';
import { useData } from '../data/use-data.ts';
import { Icon } from '../parts/icon.tsx';
import { Card, Empty, Notice, Page, Segments, Status, type Tone, Waiting } from '../parts/parts.tsx';
import { say } from '../parts/toasts.tsx';

/** One delivery: its content, its jobs and their attempts. */
export function Delivery({ id }: { id: string }) {
  const about = useAbout();
  const { value, error, reload } = useData<DeliveryView>(`deliveries/${encodeURIComponent(id)}?body=base64`);
  useLive('deliveries', { deliveries: reload });
  const back = (
    <a className="button" href="#/deliveries">
      <Icon name="back" />
      All deliveries
    </a>
  );
  if (value === undefined || error !== undefined) {
    return (
      <Page title="Delivery" actions={back}>
        <Card>
          {error?.status === 404 ? (
            <Empty icon="search" title="There is no such delivery">
              It may have been deleted at the end of its retention.
            </Empty>
          ) : (
            <Waiting error={error} what="The delivery" />
          )}
        </Card>
      </Page>
    );
  }
  return (
    <Page
      title={value.event ?? 'Delivery without an event'}
      about={
        <>
          <Status tone={statusTone(value.status)}>{value.status}</Status>{' '}
          <span className="mono break">{value.id}</span>
        </>
      }
      actions={
        <>
          {back}
          {about?.actions === true && isActionable('discard', value) && (
            <button type="button" className="button danger" onClick={() => void actOn(id, 'discard', reload)}>
              Discard
            </button>
          )}
          {about?.actions === true && isActionable('replay', value) && (
            <button type="button" className="button primary" onClick={() => void actOn(id, 'replay', reload)}>
              <Icon name="replay" />
              Replay
            </button>
          )}
        </>
      }
    >
      <div className="grid two detail">
        <Card title="Received">
          <dl className="facts">
            <dt>When</dt>
            <dd>{formatMoment(value.receivedAt)}</dd>
            <dt>Source</dt>
            <dd className="break">{value.source || '/webhook'}</dd>
            <dt>Event</dt>
            <dd className="break">{value.event ?? 'none'}</dd>
            {value.senderEvent !== value.event && (
              <>
                <dt>Sender's name</dt>
                <dd className="break">{value.senderEvent}</dd>
              </>
            )}
            <dt>Content type</dt>
            <dd className="break">{value.contentType ?? 'none'}</dd>
            <dt>Size</dt>
            <dd>{formatBytes(value.size)}</dd>
          </dl>
          {value.headers !== undefined && Object.keys(value.headers).length > 0 && (
            <Headers headers={value.headers} />
          )}
        </Card>
        <Card title="Timeline" note={`${value.attempts} ${value.attempts === 1 ? 'attempt' : 'attempts'}`}>
          <Timeline delivery={value} />
        </Card>
      </div>
      <Card title="Body">
        <DeliveryBody delivery={value} />
      </Card>
    </Page>
  );
}

function Headers({ headers }: { headers: NonNullable<DeliveryView['headers']> }) {
  return (
    <>
      <h3 className="card-part">Headers</h3>
      <dl className="facts mono">
        {Object.entries(headers).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="break">{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

/** The jobs of a delivery in order, each with the attempts that the service keeps. */
function Timeline({ delivery }: { delivery: DeliveryView }) {
  if (delivery.jobs.length === 0) {
    return (
      <Empty icon="deliveries" title="Nothing handles this event">
        The delivery is stored. Add a handler or a forward address for it, then replay it.
      </Empty>
    );
  }
  return (
    <ol className="timeline">
      <li className="quiet">
        <span className="timeline-head">Received and stored</span>
        <time>{formatMoment(delivery.receivedAt)}</time>
      </li>
      {delivery.jobs.map((job) => (
        <JobSteps key={job.target} job={job} />
      ))}
    </ol>
  );
}

function JobSteps({ job }: { job: Job }) {
  const { target, status, attempts, crashes, nextAttemptAt, plannedAt, finishedAt, error, history } = job;
  // The last attempt already shows this error.
  const isTold = error === null || error === undefined || history.at(-1)?.error === error;
  return (
    <>
      {history.map((attempt) => (
        <Step key={`${attempt.startedAt} ${attempt.outcome}`} target={target} attempt={attempt} />
      ))}
      <li className={`job ${statusTone(status)}`}>
        <span className="timeline-head">
          <code className="break">{target}</code> <Status tone={statusTone(status)}>{status}</Status>
        </span>
        <time>
          {attempts} {attempts === 1 ? 'attempt' : 'attempts'}
          {crashes > 0 && `, ${crashes} crashed`}
          {finishedAt !== null && `, ended ${formatMoment(finishedAt)}`}
          {plannedAt !== null && `, planned for ${formatMoment(plannedAt)}`}
          {nextAttemptAt !== null && `, next ${formatMoment(nextAttemptAt)}`}
        </time>
        {!isTold && <p className="error-text">{error}</p>}
      </li>
    </>
  );
}

function Step({ target, attempt: made }: { target: string; attempt: Attempt }) {
  const { attempt, outcome, startedAt, durationMs, process, status, error, answer } = made;
  const [tone, words] = OUTCOMES[outcome] ?? ['quiet', outcome];
  return (
    <li className={`attempt ${tone}`}>
      <span className="timeline-head">
        Attempt {attempt} {words}
        {status !== null && <Status tone={tone}>{status}</Status>}
        <code className="break quiet">{target}</code>
      </span>
      <time>
        {formatMoment(startedAt)}
        {durationMs !== null && `, took ${formatMs(durationMs)}`}
        {`, on ${process}`}
      </time>
      {error && <p className="error-text">{error}</p>}
      {answer && <pre className="wrap answer">{answer}</pre>}
    </li>
  );
}

const OUTCOMES: Readonly<Record<string, readonly [Tone, string]>> = {
  done: ['good', 'succeeded'],
  retry: ['warn', 'failed, retry follows'],
  dead: ['bad', 'failed permanently'],
  released: ['quiet', 'was released'],
  crashed: ['bad', 'crashed with its process'],
};

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
function DeliveryBody({ delivery }: { delivery: DeliveryView }) {
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

const DONE: Readonly<Record<Action, string>> = { replay: 'Replay requested', discard: 'Discarded' };

/** Replays or discards one delivery and shows the result. */
export async function actOn(id: string, action: Action, onDone: () => void): Promise<void> {
  try {
    await act('POST', `deliveries/${encodeURIComponent(id)}`, { action });
    say('good', `${DONE[action]}: ${id}`);
  } catch (error) {
    say('bad', (error as Error).message);
  }
  onDone();
}

/** Maximum number of shown members of a value; a longer value states how many are omitted. */
const MAX_MEMBERS = 200;

/** A JSON value as a tree with collapsible branches. All content is rendered as text. */
function JsonTree({ value, depth = 0 }: { value: unknown; depth?: number }) {
  if (typeof value !== 'object' || value === null) return <Leaf value={value} />;
  const members = Object.entries(value);
  const isArray = Array.isArray(value);
  if (members.length === 0) return <span className="json-mark">{isArray ? '[]' : '{}'}</span>;
  return (
    <ul className="json">
      {members.slice(0, MAX_MEMBERS).map(([key, member]) => (
        <li key={key}>
          <Member name={key} member={member} depth={depth} />
        </li>
      ))}
      {members.length > MAX_MEMBERS && <li className="quiet">{members.length - MAX_MEMBERS} more</li>}
    </ul>
  );
}

function Member({ name, member, depth }: { name: string; member: unknown; depth: number }) {
  const isBranch = typeof member === 'object' && member !== null && Object.keys(member).length > 0;
  if (!isBranch) {
    return (
      <>
        <span className="json-key">{name}</span>
        <JsonTree value={member} />
      </>
    );
  }
  const count = Object.keys(member).length;
  return (
    <details open={depth < 3}>
      <summary>
        <span className="json-key">{name}</span>
        <span className="json-mark">{Array.isArray(member) ? `[${count}]` : `{${count}}`}</span>
      </summary>
      <JsonTree value={member} depth={depth + 1} />
    </details>
  );
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value === 'string') return <span className="json-text">{JSON.stringify(value)}</span>;
  return <span className="json-value">{String(value)}</span>;
}

/** One job of a delivery. */
interface Job {
  readonly target: string;
  readonly status: string;
  readonly attempts: number;
  /** Attempts whose process crashed. */
  readonly crashes: number;
  readonly nextAttemptAt: string | null;
  /** The earliest time to handle it, if it was received for later. */
  readonly plannedAt: string | null;
  readonly finishedAt: string | null;
  readonly error?: string | null;
  /** The finished attempts that the job keeps, the latest ones. */
  readonly history: readonly Attempt[];
}

interface Attempt {
  readonly attempt: number;
  readonly outcome: string;
  readonly startedAt: string;
  readonly durationMs: number | null;
  /** The process that made the attempt. */
  readonly process: string;
  /** The status that a forward address answered. */
  readonly status: number | null;
  readonly error?: string | null;
  readonly answer?: string | null;
}

/** One delivery with all details. */
interface DeliveryView extends DeliveryRow {
  readonly contentType: string | null;
  readonly dataPointer: string;
  readonly jobs: readonly Job[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly bodyBase64?: string;
  readonly bodyTruncated?: boolean;
}

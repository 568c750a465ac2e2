import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { ApiError, act } from '../../data/api.ts';
import { goTo, linkTo, type Route } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Loaded } from '../../parts/data-table.tsx';
import { Choice } from '../../parts/filters.tsx';
import { Card, Page, Segments } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';
import {
  type EndpointView,
  type EventType,
  type NewEndpoint as Made,
  type Me,
  pathOf,
  useAll,
} from '../data.ts';
import { bodyOf, type Draft, draftOf, FIELDS, type FieldName, faultsOf } from './endpoint-draft.ts';
import { Secret } from './secrets.tsx';

/** The form of a new endpoint, then its secret. */
export function NewEndpoint({ route: _ }: { route: Route }) {
  const [made, setMade] = useState<Made>();
  if (made === undefined) {
    return (
      <Page title="New endpoint">
        <EndpointForm
          submit="Create"
          before={undefined}
          cancel="#/endpoints"
          save={async (body) => setMade(await act<Made>('POST', 'endpoints', body))}
        />
      </Page>
    );
  }
  return (
    <Page title="The endpoint is created" about={<span className="break">{made.url}</span>}>
      <Card title="Its signing secret">
        <div className="card-body secrets">
          <p>
            Each request has a signature made with this secret. Put it into the configuration of your
            receiver.
          </p>
          <Secret secret={made.secret} />
          <div className="actions">
            <a className="button primary" href={linkTo('endpoints', made.id)}>
              Go to the endpoint
            </a>
          </div>
        </div>
      </Card>
    </Page>
  );
}

/** The form of an endpoint that exists. */
export function EditEndpoint({ route: { item } }: { route: Route }) {
  const data = useData<EndpointView>(pathOf(item));
  return (
    <Page title="Edit endpoint">
      <Loaded data={data} what="The endpoint">
        {(before) => (
          <EndpointForm
            submit="Save"
            before={before}
            cancel={linkTo('endpoints', item)}
            save={async (body) => {
              await act('PATCH', pathOf(item), body);
              say('good', 'Saved');
              goTo(linkTo('endpoints', item));
            }}
          />
        )}
      </Loaded>
    </Page>
  );
}

function EndpointForm({
  before,
  submit,
  cancel,
  save,
}: {
  before: EndpointView | undefined;
  submit: string;
  cancel: string;
  save: (body: object) => Promise<void>;
}) {
  const [draft, setDraft] = useState(() => draftOf(before));
  const [faults, setFaults] = useState<Readonly<Record<string, readonly string[]>>>({});
  const [problem, setProblem] = useState('');
  const [isSaving, setSaving] = useState(false);
  const form = useRef<HTMLFormElement | null>(null);
  const change = (part: Partial<Draft>) => setDraft((now) => ({ ...now, ...part }));

  // The first field with a fault gets the focus, once it is marked: a frame may come before React has drawn.
  useEffect(() => {
    if (Object.keys(faults).length === 0) return;
    form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [faults]);

  function tell(found: Readonly<Record<string, readonly string[]>>, other: string): void {
    setFaults(found);
    setProblem(other);
  }

  async function submitted(): Promise<void> {
    const { body, faults: own } = bodyOf(draft, before !== undefined);
    if (Object.keys(own).length > 0) return tell(own, '');
    setSaving(true);
    try {
      await save(body);
    } catch (error) {
      const { byField, others } = faultsOf(error instanceof ApiError ? error.faults : []);
      const isTold = Object.keys(byField).length > 0 && others.length === 0;
      tell(byField, isTold ? '' : others.join('; ') || (error as Error).message);
    }
    setSaving(false);
  }

  const text = (name: FieldName) => (
    <TextField name={name} draft={draft} faults={faults[name] ?? []} onChange={change} />
  );
  return (
    <form
      ref={form}
      className="card row-form"
      aria-label={submit === 'Create' ? 'New endpoint' : 'Edit endpoint'}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!isSaving) void submitted();
      }}
    >
      {problem !== '' && (
        <div className="notice bad" role="alert">
          {problem}
        </div>
      )}
      <div className="row-fields">
        {text('url')}
        {text('description')}
      </div>
      <TypesField draft={draft} faults={faults.types ?? []} onChange={change} />
      <details
        open={
          faults.secret !== undefined ||
          SPECIAL.some((name) => before?.[name] !== undefined || faults[name] !== undefined)
        }
      >
        <summary>More settings</summary>
        <div className="row-fields">
          {text('channels')}
          {text('rate')}
          {text('order')}
          {text('filter')}
          {text('headers')}
          <TransformField draft={draft} faults={faults.transform ?? []} onChange={change} />
          {before === undefined && text('secret')}
        </div>
      </details>
      <div className="actions">
        <button type="submit" className="button primary" disabled={isSaving}>
          {submit}
        </button>
        <a className="button" href={cancel}>
          Cancel
        </a>
      </div>
    </form>
  );
}

/** The fields that are open at once only if they say something. */
const SPECIAL = ['channels', 'filter', 'rate', 'order', 'headers', 'transform'] as const;

/** The faults of a field, below it. */
function Faults({ id, faults }: { id: string; faults: readonly string[] }) {
  return (
    <div id={id} className="faults">
      {faults.map((fault) => (
        <p key={fault} className="error-text">
          {fault}
        </p>
      ))}
    </div>
  );
}

function TextField({
  name,
  draft,
  faults,
  onChange,
}: {
  name: FieldName;
  draft: Draft;
  faults: readonly string[];
  onChange: (part: Partial<Draft>) => void;
}) {
  const id = useId();
  const { label, hint, example, isLong = false } = FIELDS[name];
  const Input = isLong ? 'textarea' : 'input';
  return (
    <div className="row-field">
      <div className="field">
        <label htmlFor={id}>{label}</label>
        <Input
          id={id}
          type={isLong ? undefined : name === 'url' ? 'url' : 'text'}
          value={draft[name]}
          placeholder={example}
          spellCheck={false}
          required={name === 'url'}
          autoComplete="off"
          aria-describedby={`${id}-hint ${id}-faults`}
          aria-invalid={faults.length > 0}
          onChange={({ currentTarget }) => onChange({ [name]: currentTarget.value })}
        />
        <small id={`${id}-hint`}>{hint}</small>
      </div>
      <Faults id={`${id}-faults`} faults={faults} />
    </div>
  );
}

/** The choice of a transformation; nothing if the configuration has none. */
function TransformField({
  draft: { transform },
  faults,
  onChange,
}: {
  draft: Draft;
  faults: readonly string[];
  onChange: (part: Partial<Draft>) => void;
}) {
  const id = useId();
  const names = useData<Me>('me').value?.transforms ?? [];
  if (names.length === 0 && transform === '') return null;
  const { label, hint } = FIELDS.transform;
  return (
    <div className="row-field">
      <Choice
        label={label}
        options={[['', 'None'], ...names.map((name) => [name, name] as const)]}
        value={transform}
        describedBy={`${id}-hint ${id}-faults`}
        isInvalid={faults.length > 0}
        onPick={(picked) => onChange({ transform: picked })}
      />
      <small id={`${id}-hint`}>{hint}</small>
      <Faults id={`${id}-faults`} faults={faults} />
    </div>
  );
}

/** The event types of an endpoint: all, or those that are ticked and those that match a pattern. */
function TypesField({
  draft,
  faults,
  onChange,
}: {
  draft: Draft;
  faults: readonly string[];
  onChange: (part: Partial<Draft>) => void;
}) {
  const id = useId();
  const { value } = useAll<EventType>('event-types');
  const known = value ?? [];
  const names = new Set(known.map(({ name }) => name));
  // A type that is chosen but not described stays visible.
  const others = [...draft.types].filter((name) => value !== undefined && !names.has(name));
  const tick = (name: string, isTicked: boolean) => {
    const types = new Set(draft.types);
    if (isTicked) types.add(name);
    else types.delete(name);
    onChange({ types });
  };
  const box = (name: string, description?: ReactNode) => (
    <label key={name} className="check">
      <input
        type="checkbox"
        checked={draft.types.has(name)}
        onChange={({ currentTarget }) => tick(name, currentTarget.checked)}
      />
      <span className="break">
        {name} {description !== undefined && <small>{description}</small>}
      </span>
    </label>
  );
  return (
    <div className="row-field types">
      <div className="actions">
        <h2>Events</h2>
        <Segments
          label="Which events it gets"
          options={[
            ['all', 'All events'],
            ['some', 'Chosen events'],
          ]}
          value={draft.isAll ? 'all' : 'some'}
          onPick={(picked) => onChange({ isAll: picked === 'all' })}
        />
      </div>
      {!draft.isAll && (
        <>
          {(known.length > 0 || others.length > 0) && (
            <fieldset className="type-list">
              <legend className="unseen">Event types</legend>
              {known.map(({ name, description }) => box(name, description))}
              {others.map((name) => box(name))}
            </fieldset>
          )}
          <div className="field">
            <label htmlFor={id}>Further types and patterns</label>
            <input
              id={id}
              type="text"
              value={draft.patterns}
              placeholder="invoice.*, customer.created"
              spellCheck={false}
              autoComplete="off"
              aria-describedby={`${id}-hint ${id}-faults`}
              aria-invalid={faults.length > 0}
              onChange={({ currentTarget }) => onChange({ patterns: currentTarget.value })}
            />
            <small id={`${id}-hint`}>
              Names separated by commas; invoice.* stands for all that begin with invoice.
            </small>
          </div>
        </>
      )}
      <Faults id={`${id}-faults`} faults={faults} />
    </div>
  );
}

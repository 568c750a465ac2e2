import type { ReactNode } from 'react';
import type { ApiError } from '../data/api.ts';
import { Icon, type IconName } from './icon.tsx';

/** The severity of a status: all well, a warning, a failure, information, or nothing to note. */
export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'quiet';

/** A status as a colour and a word. */
export function Status({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`status ${tone}`}>{children}</span>;
}

export function Page({
  title,
  about,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <>
      <header className="page-head">
        <div>
          <h1>{title}</h1>
          {about !== undefined && <p className="about">{about}</p>}
        </div>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

export function Card({
  title,
  note,
  className = '',
  children,
}: {
  title?: string;
  note?: ReactNode;
  className?: string;
  children: ReactNode;
}) {
  return (
    <section className={`card ${className}`}>
      {title !== undefined && (
        <header className="card-head">
          <h2>{title}</h2>
          {note !== undefined && <span className="note">{note}</span>}
        </header>
      )}
      {children}
    </section>
  );
}

/** The placeholder for a list without items. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Icon name={icon} />
      <strong>{title}</strong>
      {children !== undefined && <div className="empty-text">{children}</div>}
    </div>
  );
}

/** Shows that something is loading, or why it cannot be shown. */
export function Waiting({ error, what }: { error: ApiError | undefined; what: string }) {
  if (error === undefined) {
    return (
      <p className="waiting" aria-busy="true">
        Loading…
      </p>
    );
  }
  if (error.status === 404) {
    return (
      <Empty icon="lock" title={`${what} is not available`}>
        This service does not offer it to the console: the endpoint is excluded, or nothing in this process
        provides it.
      </Empty>
    );
  }
  return (
    <Empty icon="alert" title={`${what} cannot be read`}>
      {error.message}
    </Empty>
  );
}

/** A choice between a few options, as a row of buttons. */
export function Segments({
  label,
  options,
  value,
  onPick,
}: {
  label: string;
  options: readonly (readonly [value: string, text: string])[];
  value: string;
  onPick: (value: string) => void;
}) {
  return (
    <fieldset className="segments">
      <legend className="unseen">{label}</legend>
      {options.map(([each, text]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => onPick(each)}>
          {text}
        </button>
      ))}
    </fieldset>
  );
}

/** Pauses and resumes what the page shows as it arrives. */
export function PauseButton({
  isPaused,
  onChange,
}: {
  isPaused: boolean;
  onChange: (isPaused: boolean) => void;
}) {
  return (
    <button type="button" className="button" aria-pressed={isPaused} onClick={() => onChange(!isPaused)}>
      <Icon name={isPaused ? 'play' : 'pause'} />
      {isPaused ? 'Resume' : 'Pause'}
    </button>
  );
}

export function Notice({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <div className={`notice ${tone}`} role="status">
      {children}
    </div>
  );
}

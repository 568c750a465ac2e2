import { useState } from 'react';
import { act } from '../../data/api.ts';
import { formatMoment } from '../../data/format.ts';
import { copy } from '../../parts/copy.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Choice } from '../../parts/filters.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Card, Notice } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';
import { pathOf } from '../data.ts';

interface Shown {
  readonly secret: string;
  /** When it stops signing; null for the current one. */
  readonly until: string | null;
}

/** The secrets of an endpoint, shown on demand, and their rotation. */
export function Secrets({ id }: { id: string }) {
  const [secrets, setSecrets] = useState<readonly Shown[]>();
  const [isAsking, setAsking] = useState(false);
  async function show(): Promise<void> {
    try {
      setSecrets(
        (await act<{ readonly secrets: readonly Shown[] }>('POST', `${pathOf(id)}/secret/show`)).secrets,
      );
    } catch (error) {
      say('bad', (error as Error).message);
    }
  }
  return (
    <Card title="Signing secret">
      <div className="card-body secrets">
        <p className="note">
          Each request is signed as Standard Webhooks describes. Verify its signature with this secret before
          you trust it.
        </p>
        {secrets?.map(({ secret, until }) => (
          <Secret key={secret} secret={secret}>
            {until === null
              ? secrets.length > 1 && 'The current one.'
              : `Until ${formatMoment(until)} the previous one signs too.`}
          </Secret>
        ))}
        <div className="actions">
          <button
            type="button"
            className="button small"
            aria-expanded={secrets !== undefined}
            onClick={() => (secrets === undefined ? void show() : setSecrets(undefined))}
          >
            <Icon name="lock" />
            {secrets === undefined ? 'Show the secret' : 'Hide the secret'}
          </button>
          <button type="button" className="button small" onClick={() => setAsking(true)}>
            <Icon name="replay" />
            Rotate the secret
          </button>
        </div>
      </div>
      {isAsking && (
        <Rotate
          id={id}
          onClose={() => setAsking(false)}
          onDone={() => {
            setAsking(false);
            say('good', 'The endpoint has a new secret');
            void show();
          }}
        />
      )}
    </Card>
  );
}

/** One secret, with a button that copies it. */
export function Secret({ secret, children }: { secret: string; children?: unknown }) {
  return (
    <div className="secret">
      <code className="break">{secret}</code>
      <button
        type="button"
        className="button small"
        aria-label="Copy the secret"
        onClick={() => void copy(secret, 'Copied')}
      >
        <Icon name="copy" />
        Copy
      </button>
      {typeof children === 'string' && <small>{children}</small>}
    </div>
  );
}

const OVERLAPS = [
  ['0', 'at once'],
  ['1', 'in 1 hour'],
  ['24', 'in 24 hours'],
  ['168', 'in 7 days'],
] as const;

/** Asks how long the previous secret stays valid, and makes a new one. */
function Rotate({ id, onClose, onDone }: { id: string; onClose: () => void; onDone: () => void }) {
  const [hours, setHours] = useState('24');
  const [problem, setProblem] = useState('');
  async function rotate(): Promise<void> {
    try {
      await act('POST', `${pathOf(id)}/secret`, { overlapHours: Number(hours) });
      onDone();
    } catch (error) {
      setProblem((error as Error).message);
    }
  }
  return (
    <Dialog title="Rotate the secret" submit="Rotate" onSubmit={() => void rotate()} onClose={onClose}>
      <p>
        The endpoint gets a new secret. Until the previous one ends, each request has a signature of both, so
        you can change your receiver at any moment in between.
      </p>
      <Choice label="The previous secret ends" options={OVERLAPS} value={hours} onPick={setHours} />
      {hours === '0' && (
        <Notice tone="warn">
          Receivers that do not have the new secret yet will refuse all requests. Choose this if the secret is
          known to others.
        </Notice>
      )}
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
    </Dialog>
  );
}

import { useState } from 'react';
import { read } from '../../data/api.ts';
import type { Relation } from '../../data/relations.ts';
import { Card, Notice, Status } from '../../parts/parts.tsx';

interface Verdicts {
  readonly may: readonly string[];
  /** The columns that the caller may not read. */
  readonly hidden: readonly string[];
}

const OPERATIONS = ['read', 'update', 'delete'] as const;

/** Asks what the rules let a caller do with a row. */
export function RowAccess({ relation, rowKey }: { relation: Relation; rowKey: string }) {
  const [claims, setClaims] = useState('');
  const [found, setFound] = useState<Verdicts>();
  const [problem, setProblem] = useState('');
  const ask = async () => {
    setFound(undefined);
    setProblem('');
    try {
      const query = new URLSearchParams({ relation: relation.name, key: rowKey, claims: claims.trim() });
      setFound(await read<Verdicts>(`row-verdicts?${query}`));
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  return (
    <Card title="Who may see this row">
      <form
        className="row-form"
        aria-label="Who may see this row"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <p className="about">The rules of {relation.name} decide by the claims of a caller's token.</p>
        <div className="row-field">
          <label className="field">
            <span>
              Claims <small>JSON, empty for a caller without credentials</small>
            </span>
            <textarea
              spellCheck={false}
              placeholder={'{"sub":"ann","scope":"staff"}'}
              value={claims}
              onChange={({ currentTarget }) => {
                setClaims(currentTarget.value);
                setFound(undefined);
              }}
            />
          </label>
        </div>
        <div className="actions">
          <button type="submit" className="button">
            Ask
          </button>
          <span className="actions" role="status">
            {found !== undefined &&
              OPERATIONS.map((operation) => (
                <Status key={operation} tone={found.may.includes(operation) ? 'good' : 'bad'}>
                  {found.may.includes(operation) ? `may ${operation}` : `may not ${operation}`}
                </Status>
              ))}
            {found?.may.includes('read') === true && found.hidden.length > 0 && (
              <span className="quiet">without {found.hidden.join(', ')}</span>
            )}
          </span>
        </div>
        {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      </form>
    </Card>
  );
}

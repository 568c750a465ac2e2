import { useState } from 'react';
import { useAbout } from '../../data/about.ts';
import { act } from '../../data/api.ts';
import { formatMoment } from '../../data/format.ts';
import { useData } from '../../data/use-data.ts';
import { Card, Page, Table, Waiting } from '../../parts/parts.tsx';
import { say } from '../../parts/toasts.tsx';

interface LoggerState {
  readonly configuredLevel?: string;
  readonly effectiveLevel: string;
  readonly revertsAt?: string;
}

interface LoggersData {
  readonly levels: readonly string[];
  readonly loggers: Readonly<Record<string, LoggerState>>;
}

const EXPIRIES = [
  ['PT10M', '10 minutes', 'for 10 minutes'],
  ['PT1H', '1 hour', 'for 1 hour'],
  ['PT8H', '8 hours', 'for 8 hours'],
  ['', 'restart', 'until the next restart'],
] as const;

/** The level of each logger. A change reverts after a time unless the user makes it permanent. */
export function Loggers() {
  const about = useAbout();
  const { value, error, reload } = useData<LoggersData>('loggers', 10_000);
  const [expiry, setExpiry] = useState('PT10M');
  const mayAct = about?.actions === true;

  async function change(name: string, level: string): Promise<void> {
    const body = { configuredLevel: level === '' ? null : level, ...(expiry !== '' && { for: expiry }) };
    try {
      await act('POST', `loggers/${encodeURIComponent(name)}`, body);
      const until = EXPIRIES.find(([each]) => each === expiry)?.[2] ?? '';
      say('good', `${name} logs at ${level === '' ? 'the level of ROOT' : level} ${until}`);
    } catch (failure) {
      say('bad', (failure as Error).message);
    }
    reload();
  }

  return (
    <Page
      title="Loggers"
      about="The log level of each part of this process."
      actions={
        mayAct && (
          <label className="field inline">
            <span>Revert after</span>
            <select value={expiry} onChange={({ currentTarget }) => setExpiry(currentTarget.value)}>
              {EXPIRIES.map(([each, text]) => (
                <option key={each} value={each}>
                  {text}
                </option>
              ))}
            </select>
          </label>
        )
      }
    >
      <Card>
        {value === undefined || error !== undefined ? (
          <Waiting error={error} what="The list of loggers" />
        ) : (
          <Table label="Loggers">
            <thead>
              <tr>
                <th scope="col">Logger</th>
                <th scope="col">Level</th>
                <th scope="col">Configured</th>
                <th scope="col">Reverts at</th>
              </tr>
            </thead>
            <tbody>
              {Object.entries(value.loggers).map(([name, state]) => (
                <tr key={name}>
                  <th scope="row" className="mono">
                    {name}
                  </th>
                  <td>
                    <span className={`level ${state.effectiveLevel.toLowerCase()}`}>
                      {state.effectiveLevel}
                    </span>
                  </td>
                  <td>
                    {mayAct ? (
                      <select
                        aria-label={`Level of ${name}`}
                        value={state.configuredLevel ?? ''}
                        onChange={({ currentTarget }) => void change(name, currentTarget.value)}
                      >
                        <option value="">
                          {name === 'ROOT' ? 'the startup level' : 'inherited from ROOT'}
                        </option>
                        {value.levels.map((level) => (
                          <option key={level} value={level}>
                            {level}
                          </option>
                        ))}
                      </select>
                    ) : (
                      (state.configuredLevel ?? <span className="quiet">inherited from ROOT</span>)
                    )}
                  </td>
                  <td className="nowrap">
                    {state.revertsAt === undefined ? (
                      <span className="quiet">–</span>
                    ) : (
                      formatMoment(state.revertsAt)
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </Table>
        )}
      </Card>
    </Page>
  );
}

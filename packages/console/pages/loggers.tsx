import { useState } from 'react';
import { useAbout } from '../data/about.ts';
import { act } from '../data/api.ts';
import { formatMoment } from '../data/format.ts';
import { useData } from '../data/use-data.ts';
import { DataTable, Loaded } from '../parts/data-table.tsx';
import { Choice } from '../parts/filters.tsx';
import { Card, Page } from '../parts/parts.tsx';
import { say } from '../parts/toasts.tsx';

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
  const data = useData<LoggersData>('loggers', 10_000);
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
    data.reload();
  }

  return (
    <Page
      title="Loggers"
      about="The log level of each part of this process."
      actions={
        mayAct && (
          <Choice
            label="Revert after"
            options={EXPIRIES.map(([each, text]) => [each, text])}
            value={expiry}
            onPick={setExpiry}
          />
        )
      }
    >
      <Card>
        <Loaded data={data} what="The list of loggers">
          {({ loggers, levels }) => (
            <DataTable
              label="Loggers"
              rows={Object.entries(loggers)}
              keyOf={([name]) => name}
              columns={[
                { title: 'Logger', className: 'mono', isRowHead: true, cell: ([name]) => name },
                {
                  title: 'Level',
                  cell: ([, { effectiveLevel }]) => (
                    <span className={`level ${effectiveLevel.toLowerCase()}`}>{effectiveLevel}</span>
                  ),
                },
                {
                  title: 'Configured',
                  cell: ([name, { configuredLevel = '' }]) =>
                    mayAct ? (
                      <select
                        aria-label={`Level of ${name}`}
                        value={configuredLevel}
                        onChange={({ currentTarget }) => void change(name, currentTarget.value)}
                      >
                        <option value="">
                          {name === 'ROOT' ? 'the startup level' : 'inherited from ROOT'}
                        </option>
                        {levels.map((level) => (
                          <option key={level} value={level}>
                            {level}
                          </option>
                        ))}
                      </select>
                    ) : (
                      configuredLevel || <span className="quiet">inherited from ROOT</span>
                    ),
                },
                {
                  title: 'Reverts at',
                  className: 'nowrap',
                  cell: ([, { revertsAt }]) =>
                    revertsAt === undefined ? <span className="quiet">–</span> : formatMoment(revertsAt),
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

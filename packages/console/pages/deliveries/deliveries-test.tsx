import { useState } from 'react';
import { act } from '../../data/api.ts';
import { formatMs } from '../../data/format.ts';
import { linkTo } from '../../data/route.ts';
import { useData } from '../../data/use-data.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Notice } from '../../parts/parts.tsx';

interface Source {
  readonly name: string;
  readonly scheme: string;
  readonly event: string;
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly delivery?: string;
  readonly took: number;
}

const EXAMPLE = JSON.stringify({ test: true, amount: 12.5 }, null, 2);

/** Sends a delivery to this service, signed as its sender would. */
export function SendTest({ onClose, onSent }: { onClose: () => void; onSent: () => void }) {
  const { value } = useData<{ readonly sources: readonly Source[] }>('test-deliveries');
  const [name, setName] = useState('');
  const [event, setEvent] = useState<string>();
  const [data, setData] = useState(EXAMPLE);
  const [answer, setAnswer] = useState<Answer>();
  const [problem, setProblem] = useState('');
  const [isSending, setSending] = useState(false);
  const sources = value?.sources ?? [];
  const source = sources.find((each) => each.name === name);
  const shownEvent = event ?? source?.event ?? '';

  async function send(): Promise<void> {
    setProblem('');
    setAnswer(undefined);
    let parsed: unknown;
    try {
      parsed = JSON.parse(data);
    } catch (error) {
      setProblem(`The data is not valid JSON: ${(error as Error).message}`);
      return;
    }
    setSending(true);
    try {
      setAnswer(
        await act<Answer>('POST', 'test-deliveries', { source: name, event: shownEvent, data: parsed }),
      );
      onSent();
    } catch (error) {
      setProblem((error as Error).message);
    }
    setSending(false);
  }

  return (
    <Dialog
      title="Send a test delivery"
      onClose={onClose}
      foot={
        <>
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
          <button type="button" className="button primary" disabled={isSending} onClick={() => void send()}>
            {isSending ? 'Sending…' : 'Send'}
          </button>
        </>
      }
    >
      <label className="field">
        <span>Source</span>
        <select
          value={name}
          onChange={({ currentTarget }) => {
            setName(currentTarget.value);
            setEvent(undefined);
          }}
        >
          {sources.map((each) => (
            <option key={each.name} value={each.name}>
              {each.name === '' ? '/webhook' : each.name} (
              {each.scheme === 'none' ? 'not signed' : each.scheme})
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>Event, by the sender's name</span>
        <input
          type="text"
          value={shownEvent}
          onChange={({ currentTarget }) => setEvent(currentTarget.value)}
        />
      </label>
      <label className="field">
        <span>Data, as JSON</span>
        <textarea
          value={data}
          spellCheck={false}
          onChange={({ currentTarget }) => setData(currentTarget.value)}
        />
      </label>
      {problem !== '' && <Notice tone="bad">{problem}</Notice>}
      {answer !== undefined && (
        <Notice tone={answer.status < 300 ? 'good' : 'bad'}>
          Answered {answer.status} in {formatMs(answer.took)}: {answer.body}
          {answer.delivery !== undefined && (
            <>
              {' '}
              <a href={linkTo('deliveries', answer.delivery)}>Show the delivery</a>
            </>
          )}
        </Notice>
      )}
    </Dialog>
  );
}

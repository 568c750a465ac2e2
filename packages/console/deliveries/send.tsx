import { useState } from 'react';
import { act } from '../data/api.ts';
import { formatMs } from '../data/format.ts';
import { linkTo } from '../data/route.ts';
import { useData } from '../data/use-data.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Choice } from '../parts/filters.tsx';
import { Notice } from '../parts/parts.tsx';

interface Source {
  readonly name: string;
  readonly scheme: string;
  readonly event: string;
  readonly samples: readonly { readonly event: string; readonly data: unknown }[];
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly delivery?: string;
  readonly took: number;
}

/** A stored delivery to send again, after its body was edited. */
export interface Edited {
  readonly source: string;
  /** By the sender's name. */
  readonly event: string;
  readonly body: string;
  readonly contentType: string;
}

const EXAMPLE = { test: true, amount: 12.5 };

/** Sends a delivery to this service, signed as its sender would: an example, or an edited one. */
export function SendDelivery({
  edited,
  onClose,
  onSent,
}: {
  edited?: Edited;
  onClose: () => void;
  onSent: () => void;
}) {
  const { value } = useData<{ readonly sources: readonly Source[] }>('test-deliveries');
  const [name, setName] = useState(edited?.source ?? '');
  const [event, setEvent] = useState<string | undefined>(edited?.event);
  const [data, setData] = useState<string | undefined>(edited?.body);
  const [answer, setAnswer] = useState<Answer>();
  const [problem, setProblem] = useState('');
  const [isSending, setSending] = useState(false);
  const sources = value?.sources ?? [];
  const source = sources.find((each) => each.name === name);
  const samples = edited === undefined ? (source?.samples ?? []) : [];
  const shownEvent = event ?? source?.event ?? '';
  const sample = samples.find((each) => each.event === shownEvent);
  // Edited data stays until another source or sample is picked.
  const shownData = data ?? JSON.stringify(sample?.data ?? EXAMPLE, null, 2);

  async function send(): Promise<void> {
    setProblem('');
    setAnswer(undefined);
    let content: { readonly data: unknown } | { readonly body: string; readonly contentType: string };
    try {
      content =
        edited === undefined
          ? { data: JSON.parse(shownData) }
          : { body: shownData, contentType: edited.contentType };
    } catch (error) {
      setProblem(`The data is not valid JSON: ${(error as Error).message}`);
      return;
    }
    setSending(true);
    try {
      setAnswer(
        await act<Answer>('POST', 'test-deliveries', { source: name, event: shownEvent, ...content }),
      );
      onSent();
    } catch (error) {
      setProblem((error as Error).message);
    }
    setSending(false);
  }

  return (
    <Dialog
      title={edited === undefined ? 'Send a test delivery' : 'Edit and send again'}
      onClose={onClose}
      submit={isSending ? 'Sending…' : 'Send'}
      isDisabled={isSending}
      cancel="Close"
      onSubmit={() => void send()}
    >
      <Choice
        label="Source"
        options={sources.map(({ name: each, scheme }) => [
          each,
          `${each === '' ? '/webhook' : each} (${scheme === 'none' ? 'not signed' : scheme})`,
        ])}
        value={name}
        onPick={(picked) => {
          setName(picked);
          if (edited !== undefined) return;
          setEvent(undefined);
          setData(undefined);
        }}
      />
      {samples.length > 0 && (
        <Choice
          label="Sample"
          options={[
            ...samples.map((each) => [each.event, each.event] as const),
            ...(sample === undefined ? [[shownEvent, 'None'] as const] : []),
          ]}
          value={shownEvent}
          onPick={(picked) => {
            setEvent(picked);
            setData(undefined);
          }}
        />
      )}
      <label className="field">
        <span>Event, by the sender's name</span>
        <input
          type="text"
          value={shownEvent}
          onChange={({ currentTarget }) => setEvent(currentTarget.value)}
        />
      </label>
      <label className="field">
        <span>{edited === undefined ? 'Data, as JSON' : 'Body'}</span>
        <textarea
          value={shownData}
          spellCheck={false}
          onChange={({ currentTarget }) => setData(currentTarget.value)}
        />
      </label>
      {edited !== undefined && (
        <p className="note">
          It is a new delivery with a new id, signed now. Every target of its event gets it.
        </p>
      )}
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

import { useMemo } from 'react';
import { useAbout } from '../data/about.ts';
import type { DeliveryView } from '../data/deliveries.ts';
import { copy } from '../parts/copy.ts';
import { Icon } from '../parts/icon.tsx';
import { Card, Notice } from '../parts/parts.tsx';

/** The body of a delivery. */
interface Body {
  readonly bytes: Uint8Array;
  /** Undefined if the bytes are not UTF-8. */
  readonly text: string | undefined;
}

/** The body of a delivery; undefined where details are hidden. */
export function bodyOf({ bodyBase64 }: Pick<DeliveryView, 'bodyBase64'>): Body | undefined {
  if (bodyBase64 === undefined) return undefined;
  const bytes = Uint8Array.from(atob(bodyBase64), (sign) => sign.charCodeAt(0));
  return { bytes, text: textOf(bytes) };
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    // A truncated body may end inside a character.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true });
  } catch {
    return undefined;
  }
}

const COPIED = 'Copied. The command has no signature: add one if the door asks for it';

const pathOf = (source: string) => (source === '' ? '/webhook' : `/webhook/${encodeURIComponent(source)}`);

/** The headers that the service has of a request: its type, and those that it keeps. */
function headersOf({ contentType, headers = {} }: DeliveryView): readonly (readonly [string, string])[] {
  const type = contentType === null ? [] : [['content-type', contentType] as const];
  return [...type, ...Object.entries(headers).filter(([name]) => name !== 'content-type')];
}

/** The request as it was received: its line, all headers that are kept, and the body. */
export function RawRequest({ delivery }: { delivery: DeliveryView }) {
  const about = useAbout();
  const body = useMemo(() => bodyOf(delivery), [delivery]);
  const door = about?.doors.find(({ name }) => name === 'webhook')?.url;
  if (body === undefined) return null;
  const head = [
    `POST ${pathOf(delivery.source)}`,
    ...headersOf(delivery).map(([name, value]) => `${name}: ${value}`),
  ];
  const isWhole = delivery.bodyTruncated !== true;
  return (
    <Card
      title="Request"
      note={
        door !== undefined &&
        isWhole && (
          <button
            type="button"
            className="button small"
            onClick={() => void copy(curlOf(delivery, body, door), COPIED)}
          >
            <Icon name="copy" />
            Copy as curl
          </button>
        )
      }
    >
      <div className="card-body">
        {!isWhole && (
          <Notice tone="quiet">The body is longer; "portico deliveries show --raw" has all of it.</Notice>
        )}
        <pre className="body wrap raw">
          {head.join('\n')}
          {'\n\n'}
          {body.text ?? `(${delivery.size} bytes that are no text)`}
        </pre>
        <p className="note">
          These headers are kept; WEBHOOK_HEADERS, or the headers of a source, name more. Signatures and
          tokens are never stored.
        </p>
      </div>
    </Card>
  );
}

/** A text as one word of a POSIX shell. */
const word = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The command that sends the request again, without its signature. */
function curlOf(delivery: DeliveryView, { bytes, text }: Body, door: string): string {
  const url = door.replace(/\/webhook$/, '') + pathOf(delivery.source);
  const headers = headersOf(delivery).map(([name, value]) => `-H ${word(`${name}: ${value}`)}`);
  // A shell's word cannot hold NUL.
  const isText = text !== undefined && !text.includes('\0');
  const data = isText ? `--data-binary ${word(text)}` : '--data-binary @-';
  const command = [`curl -X POST ${word(url)}`, ...headers, data].join(' \\\n  ');
  if (isText) return command;
  return `printf %s ${word(btoa(String.fromCharCode(...bytes)))} | base64 -d | ${command}`;
}

/** One server-sent event. */
export interface ServerEvent {
  /** `message` when the server gives none. */
  readonly name: string;
  readonly data: string;
}

/** A line and its end; a carriage return that comes last may be half of one. */
const LINE = /^([^\r\n]*)(?:\r\n|\n|\r(?!$))/;

/** Reads the events of a `text/event-stream`, however its bytes are split; an unfinished event is dropped. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let name = '';
  let data: string[] = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    for (let found = LINE.exec(text); found !== null; found = LINE.exec(text)) {
      const [whole, line = ''] = found;
      text = text.slice(whole.length);
      if (line === '') {
        if (name !== '' || data.length > 0) yield { name: name || 'message', data: data.join('\n') };
        name = '';
        data = [];
      } else if (!line.startsWith(':')) {
        const [, field = '', content = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
        if (field === 'event') name = content;
        else if (field === 'data') data.push(content);
      }
    }
  }
}

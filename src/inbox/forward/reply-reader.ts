/** The head of a reply. */
export interface ReplyHead {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/** Largest head of a reply in bytes, and largest line between its chunks. */
const MAX_HEAD = 16 * 1024;
const MAX_LINE = 4 * 1024;

const HEAD_END = '\r\n\r\n';
const STATUS = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |\r|$)/;
const FIELDS =
  /\r\n(content-length|transfer-encoding|connection|keep-alive|retry-after):[ \t]*([^\r\n]*?)[ \t]*(?=\r\n|$)/gi;
const LENGTH = /^\d{1,15}$/;
const CHUNK = /^([0-9a-f]{1,8})[ \t]*(?:;.*)?$/i;

/** How the end of a body is found: by the bytes left of it, by its chunks, or by the end of the connection. */
type Framing = 'length' | 'size' | 'break' | 'trailer' | 'close';

/**
 * Reads the reply to a POST as its bytes arrive (RFC 9112). A connection is kept only if the end of the reply is
 * certain: HTTP/1.1, one length or chunks alone, and no byte more. All else is read until the connection ends.
 */
export class ReplyReader {
  /** Once its head is complete. */
  head: ReplyHead | undefined;
  isComplete = false;
  /** How long the receiver keeps an idle connection, in milliseconds; 0 if this one ends with the reply. */
  keptFor = 0;
  readonly #onBody: (bytes: Buffer) => void;
  #framing: Framing = 'close';
  /** Bytes left of the body, or of the chunk. */
  #left = 0;
  /** The start of a head or of a line that is not complete. */
  #pending: Buffer | undefined;

  constructor(onBody: (bytes: Buffer) => void) {
    this.#onBody = onBody;
  }

  /** Reads further bytes. Throws ReplyError for bytes of another protocol. */
  read(bytes: Buffer): void {
    const given = this.#pending === undefined ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#pending = undefined;
    const at = this.head === undefined ? this.#readHead(given) : 0;
    if (at === -1) return;
    const end = this.#readBody(given, at);
    if (this.isComplete && end < given.length) this.keptFor = 0;
  }

  /** Notes that the connection has ended; whether the reply is complete with that. */
  end(): boolean {
    this.keptFor = 0;
    this.isComplete ||= this.head !== undefined && this.#framing === 'close';
    return this.isComplete;
  }

  /** Returns where the body begins; -1 if the head is not complete. */
  #readHead(bytes: Buffer): number {
    for (let begin = 0; ; ) {
      const end = bytes.indexOf(HEAD_END, begin);
      if (end - begin > MAX_HEAD || (end === -1 && bytes.length - begin > MAX_HEAD)) throw new ReplyError();
      const text = bytes.toString('latin1', begin, end === -1 ? bytes.length : end);
      // Fails early for a server that speaks another protocol.
      if (text.length >= 8 && !text.startsWith('HTTP/1.')) throw new ReplyError();
      if (end === -1) {
        this.#pending = bytes.subarray(begin);
        return -1;
      }
      const [, minor, code] = STATUS.exec(text) ?? [];
      if (code === undefined) throw new ReplyError();
      begin = end + HEAD_END.length;
      const status = Number(code);
      // Interim replies, such as 103.
      if (status < 200 && status !== 101) continue;
      this.#setHead(status, minor === '1', text);
      return begin;
    }
  }

  #setHead(status: number, isCurrent: boolean, text: string): void {
    let retryAfter: string | undefined;
    let length: string | undefined;
    let coding: string | undefined;
    let isDoubtful = !isCurrent || status < 200;
    let idle = Number.POSITIVE_INFINITY;
    for (const [, name = '', value = ''] of text.matchAll(FIELDS)) {
      switch (name.toLowerCase()) {
        case 'content-length':
          isDoubtful ||= length !== undefined;
          length = value;
          break;
        case 'transfer-encoding':
          isDoubtful ||= coding !== undefined;
          coding = value.toLowerCase();
          break;
        case 'connection':
          isDoubtful ||= value.toLowerCase() !== 'keep-alive';
          break;
        case 'keep-alive': {
          const [, seconds] = /\btimeout=(\d{1,6})\b/i.exec(value) ?? [];
          if (seconds !== undefined) idle = Number(seconds) * 1_000;
          break;
        }
        default:
          retryAfter = value;
      }
    }
    this.head = { status, retryAfter };
    isDoubtful ||= coding !== undefined && (coding !== 'chunked' || length !== undefined);
    const hasBody = status !== 204 && status !== 304;
    if (!hasBody) this.#framing = 'length';
    else if (isDoubtful && coding !== undefined) this.#framing = 'close';
    else if (coding !== undefined) this.#framing = 'size';
    else if (length !== undefined && LENGTH.test(length)) {
      this.#framing = 'length';
      this.#left = Number(length);
    }
    if (!isDoubtful && this.#framing !== 'close') this.keptFor = idle;
  }

  /** Returns where the reply ends, or the length of the bytes. */
  #readBody(bytes: Buffer, begin: number): number {
    let at = begin;
    for (;;) {
      if (this.#framing === 'length' && this.#left === 0) {
        this.isComplete = true;
        return at;
      }
      if (at >= bytes.length) return at;
      if (this.#framing === 'close') {
        this.#onBody(bytes.subarray(at));
        return bytes.length;
      }
      if (this.#left > 0) {
        const end = Math.min(bytes.length, at + this.#left);
        this.#left -= end - at;
        this.#onBody(bytes.subarray(at, end));
        at = end;
        continue;
      }
      const end = bytes.indexOf('\r\n', at);
      if (end - at > MAX_LINE || (end === -1 && bytes.length - at > MAX_LINE)) throw new ReplyError();
      if (end === -1) {
        this.#pending = bytes.subarray(at);
        return bytes.length;
      }
      const line = bytes.toString('latin1', at, end);
      at = end + 2;
      if (this.#isLast(line)) {
        this.isComplete = true;
        return at;
      }
    }
  }

  /** Reads a line between chunks; whether it is the last one. */
  #isLast(line: string): boolean {
    if (this.#framing === 'trailer') return line === '';
    if (this.#framing === 'break') {
      if (line !== '') throw new ReplyError();
      this.#framing = 'size';
      return false;
    }
    const [, size] = CHUNK.exec(line) ?? [];
    if (size === undefined) throw new ReplyError();
    this.#left = Number.parseInt(size, 16);
    this.#framing = this.#left === 0 ? 'trailer' : 'break';
    return false;
  }
}

/** A receiver's bytes are not a reply. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError';
  readonly code = 'REPLY';

  constructor() {
    super('the receiver sent no valid HTTP reply');
  }
}

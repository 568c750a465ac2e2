import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import type { ExportFormat } from '../../users/user-pages.ts';

/** Users are personal data: the file is its owner's alone, whatever the umask lets. */
const PRIVATE = 0o600;

/** How far an export came. */
export interface ExportPosition {
  readonly format: ExportFormat;
  /** The size of the file, in bytes. */
  readonly bytes: number;
  readonly users: number;
  /** The id of the last user in it, and of the last one that it is to have. */
  readonly lastId: number;
  readonly upTo: number;
}

/**
 * A file that is written in pieces. Until it is complete it has another name, and a position beside it that is never
 * ahead of what is on the disk: who goes on cuts off what came after it.
 */
export class ExportFile implements AsyncDisposable {
  readonly #path: string;
  readonly #file: FileHandle;
  #position: ExportPosition;

  private constructor(path: string, file: FileHandle, position: ExportPosition) {
    this.#path = path;
    this.#file = file;
    this.#position = position;
  }

  /** Goes on with what was interrupted, or begins with `fresh`. */
  static async open(path: string, fresh: ExportPosition, restart: boolean): Promise<ExportFile> {
    const found = restart ? undefined : await positionOf(path);
    const position = found?.format === fresh.format ? found : fresh;
    const file = await open(partOf(path), position === fresh ? 'w' : 'r+', PRIVATE);
    await file.chmod(PRIVATE);
    await file.truncate(position.bytes);
    return new ExportFile(path, file, position);
  }

  get position(): ExportPosition {
    return this.#position;
  }

  /** Appends bytes, with the users up to `lastId`. */
  async append(bytes: Buffer, users: number, lastId: number): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const place = this.#position.bytes + at;
      at += (await this.#file.write(bytes, at, bytes.length - at, place)).bytesWritten;
    }
    const before = this.#position;
    this.#position = { ...before, bytes: before.bytes + bytes.length, users: before.users + users, lastId };
  }

  /** Records the position, once what is in front of it is on the disk. */
  async record(): Promise<void> {
    await this.#file.sync();
    const beside = `${partOf(this.#path)}.json`;
    await writeFile(`${beside}.new`, `${JSON.stringify(this.#position)}\n`, { flush: true, mode: PRIVATE });
    await rename(`${beside}.new`, beside);
  }

  /** Gives the file its name. */
  async complete(): Promise<void> {
    await this.#file.sync();
    await rename(partOf(this.#path), this.#path);
    await rm(`${partOf(this.#path)}.json`, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

function partOf(path: string): string {
  return `${path}.part`;
}

async function positionOf(path: string): Promise<ExportPosition | undefined> {
  try {
    return JSON.parse(await readFile(`${partOf(path)}.json`, 'utf8')) as ExportPosition;
  } catch {
    return undefined;
  }
}

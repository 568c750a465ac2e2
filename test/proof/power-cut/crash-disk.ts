import { basename, dirname } from 'node:path';
import type { Random } from '../../support/random.ts';
import { crashStyle } from './crash-styles.ts';
import { FileImage } from './file-image.ts';
import type { Call, Step } from './trace.ts';

/** Which file a name stands for: as it is durably, and what became of the name since. Undefined: no file. */
interface Name {
  durable: FileImage | undefined;
  changes: (FileImage | undefined)[];
}

/**
 * A folder on a disk while a recorded process works on it. Only what a sync covered is sure to be there after a
 * power cut: bytes by a sync of their file, names by one of the folder.
 */
export class CrashDisk {
  readonly #names = new Map<string, Name>();
  readonly #underWay = new Map<Call, (failed: boolean) => void>();

  /** Goes one step further in the recording. */
  advance({ phase, call }: Step): void {
    if (phase === 'end') {
      this.#underWay.get(call)?.(call.kind === 'sync' && call.failed);
      this.#underWay.delete(call);
    } else {
      const end = this.#begin(call);
      if (end !== undefined) this.#underWay.set(call, end);
    }
  }

  #begin(call: Call): ((failed: boolean) => void) | undefined {
    switch (call.kind) {
      case 'create':
        return () => {
          if (this.#file(call.path) === undefined) this.#name(call.path).changes.push(new FileImage());
        };
      case 'unlink':
        return () => this.#name(call.path).changes.push(undefined);
      case 'write':
      case 'truncate': {
        const file = this.#file(call.path);
        const change =
          call.kind === 'write' ? file?.begin(call.offset, call.data) : file?.begin(call.size, 'truncate');
        return () => {
          if (change !== undefined) change.returned = true;
        };
      }
      case 'sync':
        return this.#file(call.path)?.beginSync() ?? this.#beginNames(call.path);
      case 'reply':
        return undefined;
    }
  }

  #beginNames(folder: string): (failed: boolean) => void {
    const covered = [...this.#names]
      .filter(([path]) => dirname(path) === folder)
      .map(([, name]) => [name, name.changes.length] as const);
    return (failed) => {
      if (failed) return;
      for (const [name, count] of covered) {
        const done = name.changes.splice(0, count);
        if (done.length > 0) name.durable = done.at(-1);
      }
    };
  }

  #name(path: string): Name {
    const name = this.#names.get(path) ?? { durable: undefined, changes: [] };
    this.#names.set(path, name);
    return name;
  }

  #file(path: string): FileImage | undefined {
    const name = this.#names.get(path);
    return name === undefined || name.changes.length === 0 ? name?.durable : name.changes.at(-1);
  }

  /** What may be found in the folder after a power cut now: the bytes of each file by its name. */
  crash(random: Random): ReadonlyMap<string, Buffer> {
    const style = crashStyle(random);
    const found = new Map<string, Buffer>();
    for (const [path, { durable, changes }] of this.#names) {
      const reached = style.survival(changes.length, random)(0);
      const file = reached === 0 ? durable : changes[reached - 1];
      if (file !== undefined) found.set(basename(path), file.crash(style, random));
    }
    return found;
  }
}

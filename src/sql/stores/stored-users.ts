import {
  earlier,
  firstDuplicate,
  IMPORT_KEPT,
  type ImportCheckpoint,
  type ImportPosition,
} from '../../relations/import.ts';
import { importInProgress } from '../../relations/import-readers.ts';
import {
  type ChangeOutcome,
  emailTaken,
  type IdempotencyKey,
  type IdempotentOutcome,
  type NewUser,
  type UserChange,
  UserRefusedError,
  type WriteCondition,
} from '../../relations/user.ts';
import { DatabaseUserStore, type WholeImport } from '../../relations/user-stores.ts';
import { storedKey } from '../inbox-sql.ts';
import type { Row, Sql, Step } from './sql.ts';
import { USER_QUERIES } from './user-queries.ts';

/** A time that every version precedes. */
const NEVER = Number.MAX_SAFE_INTEGER;

/** Matches every user. */
const ANY: WriteCondition = { versions: undefined, before: undefined };

/** Users in a database, as far as both engines do the same. */
export abstract class StoredUsers extends DatabaseUserStore {
  readonly #sql: Sql;
  readonly #onChanged: () => void;
  /** Idempotency keys of creates in progress. */
  readonly #running = new Set<string>();

  /** `onChanged` is called when a change is durable. */
  constructor(sql: Sql, onChanged: () => void = () => {}) {
    super();
    this.#sql = sql;
    this.#onChanged = onChanged;
  }

  async update(id: number, user: NewUser): Promise<boolean> {
    return (await this.change(id, { ...user, condition: ANY })).is === 'changed';
  }

  async remove(id: number): Promise<boolean> {
    return (await this.removeIf(id, ANY)).is === 'removed';
  }

  async createOnce(
    { name, email }: NewUser,
    { key, fingerprint, keptFor }: IdempotencyKey,
  ): Promise<IdempotentOutcome> {
    if (this.#running.has(key)) return { is: 'running' };
    this.#running.add(key);
    try {
      const { claimKey, createForKey, noteForKey, expireKeys } = USER_QUERIES;
      const stored = storedKey(key);
      const now = Date.now();
      const [, , [kept] = []] = await refusingTaken(
        this.#sql.write(
          [claimKey, stored, fingerprint, now, now + keptFor],
          [createForKey, stored, name, email],
          [noteForKey, stored, now],
          [expireKeys, now],
        ),
      );
      if (kept === undefined) return { is: 'running' };
      const [before, id, version] = kept;
      if (before !== fingerprint) return { is: 'reused' };
      this.#onChanged();
      return { is: 'created', id: Number(id), version: Number(version) };
    } finally {
      this.#running.delete(key);
    }
  }

  change(id: number, { name, email, condition }: UserChange): Promise<ChangeOutcome> {
    const { change } = USER_QUERIES;
    const step: Step = [change, ...conditionValues(id, condition), name ?? null, email ?? null, Date.now()];
    return this.#conditional(id, step, ([version, json]) => ({
      is: 'changed',
      version: Number(version),
      json: String(json),
    }));
  }

  removeIf(id: number, condition: WriteCondition): Promise<ChangeOutcome> {
    const step: Step = [USER_QUERIES.removeIf, ...conditionValues(id, condition)];
    return this.refusingReferenced(
      id,
      this.#conditional(id, step, () => ({ is: 'removed' })),
    );
  }

  /** Awaits the removal of a user; converts the error of rows that refer to the user. */
  protected refusingReferenced<T>(id: number, removal: Promise<T>): Promise<T> {
    return removal.catch(async (error: unknown) => {
      if (!isReferenced(error)) throw error;
      const by = (await this.rows?.referrersOf([id])) ?? [];
      const whose = by.length === 0 ? 'other relations' : by.join(' and ');
      throw new UserRefusedError('REFERENCED', `Rows of ${whose} refer to this user`);
    });
  }

  /** Runs a conditional write; if it affects no row, finds out why. */
  async #conditional(id: number, step: Step, outcome: (row: Row) => ChangeOutcome): Promise<ChangeOutcome> {
    const [[row] = []] = await refusingTaken(this.#sql.write(step));
    if (row !== undefined) {
      this.#onChanged();
      return outcome(row);
    }
    const found = await this.#sql.read(USER_QUERIES.exists, id);
    return { is: found.length === 0 ? 'missing' : 'refused' };
  }

  /** Stores users in one commit, all or none, with the move of an import; resolves to their ids. */
  protected abstract createAll(
    users: readonly NewUser[],
    checkpoint: ImportCheckpoint | undefined,
  ): Promise<readonly number[]>;

  /** If an email is taken, by a stored user or an earlier one, finds the first such user. */
  async importAll(users: readonly NewUser[], checkpoint?: ImportCheckpoint): Promise<WholeImport> {
    try {
      return { ids: await this.createAll(users, checkpoint) };
    } catch (error) {
      if (!isEmailTaken(error)) throw error;
      const emails = users.map(({ email }) => [email]);
      const [[nth] = []] = await this.#sql.read(USER_QUERIES.firstTaken, { rows: emails });
      return { taken: earlier(typeof nth === 'number' ? nth : undefined, firstDuplicate(users)) ?? 0 };
    }
  }

  async beginImport(key: string): Promise<ImportPosition> {
    const { expireImports, beginImport } = USER_QUERIES;
    const now = Date.now();
    const [, [row = []] = []] = await this.#sql.write(
      [expireImports, now - IMPORT_KEPT],
      [beginImport, storedKey(key), now],
    );
    const [line = 0, digest = null] = row;
    return { line: Number(line), digest: digest === null ? undefined : String(digest) };
  }
}

function conditionValues(id: number, { versions, before }: WriteCondition) {
  return [id, versions ?? null, before ?? NEVER] as const;
}

/** What an engine says about a violated constraint: SQLite by its message, PostgreSQL by names. */
interface Violation {
  readonly message?: string;
  readonly cause?: { readonly code?: unknown; readonly constraint?: unknown; readonly column?: unknown };
}

/** Whether a write failed because an email is taken. */
function isEmailTaken(error: unknown): boolean {
  const { message = '', cause }: Violation = Object(error);
  return (
    cause?.constraint === 'users_email_unique' || message.includes('UNIQUE constraint failed: users.email')
  );
}

/** Whether a removal failed because of a foreign key. */
function isReferenced(error: unknown): boolean {
  const { message = '', cause }: Violation = Object(error);
  return cause?.code === '23503' || message.includes('FOREIGN KEY constraint failed');
}

/** Awaits a write; converts the error of a duplicate email. Creates pass through it, so it adds no `await`. */
export function refusingTaken<T>(write: Promise<T>): Promise<T> {
  return write.catch((error: unknown) => {
    throw isEmailTaken(error) ? emailTaken() : error;
  });
}

/** Imports of users, as far as both engines do the same. */
export const imports = {
  /** The step that moves an import in the commit that stores its users. */
  move({ key, from, to, digest }: ImportCheckpoint): Step {
    return [USER_QUERIES.moveImport, storedKey(key), from, to, Date.now(), digest];
  },

  /** Awaits a write with that step; converts the error of another position. */
  async refusingMoved<T>(write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      const { message = '', cause }: Violation = Object(error);
      const isMoved =
        cause?.column === 'line' || message.includes('NOT NULL constraint failed: imports.line');
      throw isMoved ? importInProgress() : error;
    }
  },
};

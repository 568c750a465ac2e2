import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { BaseLogger } from 'pino';
import type { HealthIndicator } from '../../telemetry/health.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { backupName, backupsIn, type NamedBackup, rotateBackups, writeBackup } from './backup.ts';

/** When to make backups and which ones to keep. */
interface BackupPlan {
  /** In milliseconds. */
  readonly every: number;
  /** Created if missing. */
  readonly folder: string;
  readonly keep: number;
}

interface ScheduledBackupsOptions {
  /** The SQLite file. */
  readonly file: string;
  readonly plan: BackupPlan;
  readonly log: Pick<BaseLogger, 'info' | 'error'>;
  readonly metrics: Metrics;
}

/** How often the clock is read, in milliseconds: it may be set, and the machine may sleep. */
const LOOK = 30_000;
/** Delay before retrying a failed backup, in milliseconds, unless the next one is due earlier. */
const RETRY = 300_000;

/**
 * Makes backups while the service runs. The time of the last one is read from its file name, so restarts
 * change nothing.
 */
export class ScheduledBackups implements AsyncDisposable {
  readonly #options: ScheduledBackupsOptions;
  readonly #stopping = new AbortController();
  readonly #record: (outcome: 'completed' | 'failed', seconds: number) => void;
  #last: (NamedBackup & { readonly bytes: number }) | undefined;
  #failure: { readonly at: number; readonly error: string } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(options: ScheduledBackupsOptions) {
    this.#options = options;
    const { metrics } = options;
    const times = metrics.timer('database.backups', {
      description: 'Scheduled backups by outcome, with their duration',
      tags: ['outcome'],
    });
    this.#record = (outcome, seconds) => times.with('outcome', outcome).record(seconds);
    metrics.gauge('database.backup.age', { unit: 'seconds', description: 'Age of the newest backup' }, () =>
      this.#last === undefined ? Number.NaN : (Date.now() - this.#last.at) / 1_000,
    );
    metrics.gauge('database.backup.size', { unit: 'bytes', description: 'Size of the newest backup' }, () =>
      this.#last === undefined ? Number.NaN : this.#last.bytes,
    );
  }

  /** DOWN while the last attempt failed. Not critical, because the doors work without backups. */
  get health(): HealthIndicator {
    return {
      name: 'backup',
      critical: false,
      check: () => {
        const last = this.#last && {
          path: this.#last.path,
          at: isoTime(this.#last.at),
          bytes: this.#last.bytes,
        };
        if (this.#failure === undefined) return { status: 'UP', details: { last: last ?? null } };
        const { error, at } = this.#failure;
        return { status: 'DOWN', details: { error, failedAt: isoTime(at), last: last ?? null } };
      },
    };
  }

  /** Whether a backup is in progress, which reads the database the whole time. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), Math.min(LOOK, this.#options.plan.every));
    this.#look();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error('the service stops'));
    clearInterval(this.#timer);
    await this.#running;
  }

  #look(): void {
    this.#running ??= this.backUpWhenDue(Date.now()).finally(() => {
      this.#running = undefined;
    });
  }

  /** Makes a backup if one is due at `now`, in milliseconds since the epoch. Never rejects. */
  async backUpWhenDue(now: number): Promise<void> {
    const { file, plan, log } = this.#options;
    const began = performance.now();
    const seconds = () => (performance.now() - began) / 1_000;
    try {
      this.#last ??= newestIn(plan.folder, file);
      if (!this.#isDue(now)) return;
      mkdirSync(plan.folder, { recursive: true, mode: 0o700 });
      const path = join(plan.folder, backupName(file, now));
      const { bytes } = await writeBackup(file, path, {
        live: true,
        onCopy: () => {},
        signal: this.#stopping.signal,
      });
      this.#last = { path, at: now, bytes };
      rotateBackups(plan.folder, file, plan.keep, now);
      this.#failure = undefined;
      this.#record('completed', seconds());
      log.info({ path, bytes, seconds: Math.round(seconds()) }, 'backup completed');
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.#failure = { at: now, error: error instanceof Error ? error.message : String(error) };
      this.#record('failed', seconds());
      log.error({ err: error }, 'backup failed');
    }
  }

  #isDue(now: number): boolean {
    const { every } = this.#options.plan;
    // After the clock was set back, backups must not stop until it has caught up.
    const isPast = (at: number, delay: number) => now >= at + delay || now < at;
    if (this.#failure !== undefined) return isPast(this.#failure.at, Math.min(RETRY, every));
    return this.#last === undefined || isPast(this.#last.at, every);
  }
}

function newestIn(folder: string, file: string) {
  const newest = backupsIn(folder, file).at(-1);
  return newest && { ...newest, bytes: statSync(newest.path).size };
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}

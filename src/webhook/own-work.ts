import { deadLetterAlerts } from '../inbox/alerts/dead-letter-alerts.ts';
import type { NewDelivery } from '../inbox/delivery.ts';
import { Intake } from '../inbox/enqueue/intake.ts';
import type { HandlerLog } from '../inbox/handler.ts';
import type { Appended, Inbox } from '../inbox/inbox.ts';
import { Scheduler } from '../inbox/schedules/scheduler.ts';
import type { JobPlan } from './job-plan.ts';
import type { WebhookSettings } from './settings.ts';

export interface OwnWorkOptions extends Pick<WebhookSettings, 'schedules' | 'deadAlert'> {
  readonly inbox: Inbox;
  readonly plan: JobPlan;
  readonly log: HandlerLog;
  /** Called with each delivery that this process has stored. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  onError(error: unknown): void;
}

/** What stores deliveries that no sender sends: schedules, alerts, and what programs enqueue. */
export interface OwnWork {
  start(): void;
  /** Resolves once nothing is being stored. */
  stop(): Promise<void>;
}

export function createOwnWork(options: OwnWorkOptions): OwnWork {
  const { inbox, plan, schedules, deadAlert, log, onAppended, onError } = options;
  const alerts = deadLetterAlerts({
    inbox,
    interval: deadAlert.interval,
    onStored(alert) {
      log.warn({ delivery: alert.id }, 'alert about dead deliveries stored');
      onAppended(alert, 'stored');
    },
    onError,
  });
  const works = [
    new Intake({ inbox, plan, onAppended, onError }),
    new Scheduler({
      inbox,
      schedules,
      plan,
      onAppended,
      onMissed: (schedule, planned) =>
        log.warn({ schedule, plannedAt: new Date(planned).toISOString() }, 'scheduled delivery missed'),
      onError,
    }),
    ...(deadAlert.address === undefined ? [] : [alerts]),
  ];
  return {
    start() {
      for (const work of works) work.start();
    },
    async stop() {
      await Promise.all(works.map((work) => work.stop()));
    },
  };
}

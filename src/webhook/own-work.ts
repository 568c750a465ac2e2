import { deadLetterAlerts } from '../inbox/alerts/dead-letter-alerts.ts';
import type { NewDelivery } from '../inbox/delivery.ts';
import { Intake } from '../inbox/enqueue/intake.ts';
import type { HandlerLog } from '../inbox/handler.ts';
import type { Appended, Inbox } from '../inbox/inbox.ts';
import { Scheduler } from '../inbox/schedules/scheduler.ts';
import type { UserEventFeed } from '../users/user-event-feed.ts';
import type { JobPlan } from './job-plan.ts';
import type { WebhookSettings } from './settings.ts';
import { UserRelay } from './users/user-relay.ts';

export interface OwnWorkOptions extends Pick<WebhookSettings, 'schedules' | 'forwards' | 'deadAlert'> {
  readonly inbox: Inbox;
  /** What is done to the users of the database; undefined where there are none. */
  readonly userFeed?: UserEventFeed | undefined;
  readonly plan: JobPlan;
  readonly log: HandlerLog;
  /** Called with each delivery that this process has stored. */
  onAppended(delivery: NewDelivery, appended: Appended): void;
  onError(error: unknown): void;
}

/** What stores deliveries that no sender sends: schedules, alerts, changes of users, and what programs enqueue. */
export interface OwnWork {
  /** Resolves once no later change of a user is missed. */
  start(): Promise<void>;
  /** Resolves once nothing is being stored. */
  stop(): Promise<void>;
}

export function createOwnWork(options: OwnWorkOptions): OwnWork {
  const { inbox, userFeed: feed, plan, schedules, forwards, deadAlert, log, onAppended, onError } = options;
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
    ...(feed === undefined
      ? []
      : [
          new UserRelay({
            inbox,
            feed,
            isWanted: forwards.some(({ users = [] }) => users.length > 0),
            plan,
            onAppended,
            onLost: () =>
              log.error(
                {},
                'changes of users removed before they were forwarded, going on with the next one',
              ),
            onError,
          }),
        ]),
  ];
  return {
    async start() {
      await Promise.all(works.map((work) => work.start()));
    },
    async stop() {
      await Promise.all(works.map((work) => work.stop()));
    },
  };
}

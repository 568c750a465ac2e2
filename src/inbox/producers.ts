// The sources of deliveries that no sender sent. A configured source has no colon in its name.

const OWN = 'portico:';

export const SCHEDULE_SOURCE = `${OWN}schedule`;
export const ALERT_SOURCE = `${OWN}alert`;
export const USERS_SOURCE = `${OWN}users`;
export const ENQUEUE_SOURCE = `${OWN}enqueue`;

/** Whether a delivery came from the service or a program on its database, and not over HTTP. */
export function isOwnSource(source: string): boolean {
  return source.startsWith(OWN);
}

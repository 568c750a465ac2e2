import type { DoorApi } from '../http/openapi.ts';

/** Another door that /openapi describes. */
interface DescribedDoor {
  api(): Promise<DoorApi>;
  /** The port that it listens on; undefined while it does not. */
  port(): number | undefined;
}

/** What /openapi describes beside the management door. */
export interface ApiSources {
  /** By the name of the door. */
  readonly doors: ReadonlyMap<string, DescribedDoor>;
  /** The schema of the GraphQL door in its definition language, if the door is open. */
  sdl(): string | undefined;
}

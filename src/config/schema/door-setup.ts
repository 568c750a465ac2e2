import type { FastifyInstance } from 'fastify';
import { type Door, doors } from '../options/door.ts';
import type { Given } from './given.ts';

/** Adds routes, hooks and plugins to the Fastify instance of a door, before the door's own routes. */
export type DoorSetup = (app: FastifyInstance) => unknown;

/** The setups by door. */
export type DoorSetups = Readonly<Partial<Record<Door, DoorSetup>>>;

/** Reads the `setup` of each door. */
export function readSetups(at: (key: `${Door}.setup`) => Given, problems: string[]): DoorSetups {
  const read: Partial<Record<Door, DoorSetup>> = {};
  for (const door of doors) {
    const { value, path } = at(`${door}.setup`);
    if (isSetup(value)) read[door] = value;
    else if (value !== undefined) problems.push(`${path} must be a function`);
  }
  return read;
}

function isSetup(value: unknown): value is DoorSetup {
  return typeof value === 'function';
}

import { arch, release, type } from 'node:os';

/** The operating system, in Actuator's shape. */
export function osInfo() {
  return { name: type(), version: release(), arch: arch() };
}

import { arch, release, type } from 'node:os';

/** The operating system, as Actuator has it. */
export function osInfo() {
  return { name: type(), version: release(), arch: arch() };
}

import { arch, release, type } from 'node:os';

/** The operating system, in Actuator's shape. */
export function osInfo() {
  return { name: type(), version: release(), arch: arch() };
}

/** The runtime, in the shape of Actuator's `java`. */
export function nodeInfo() {
  const { v8, uv, openssl, modules } = process.versions;
  const { name, lts } = process.release;
  return {
    version: process.versions.node,
    lts,
    v8,
    uv,
    openssl,
    modules,
    runtime: { name, path: process.execPath },
  };
}

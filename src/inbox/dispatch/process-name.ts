import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

/** Longer names of hosts are cut, in characters. */
const MAX_HOST = 64;

/**
 * Names this process in its leases and its attempts: for people its host and its number there, and a random part that
 * makes it unique, because containers can share both.
 */
export function processName(): string {
  return `${hostname().slice(0, MAX_HOST)}:${process.pid}:${randomBytes(6).toString('hex')}`;
}

/** Access to an endpoint: none (it answers 404), reads alone, or all of its operations. */
export const accessLevels = ['none', 'read-only', 'unrestricted'] as const;

/** A level of access. */
export type Access = (typeof accessLevels)[number];

/** One entry of management.endpointAccess. */
export const endpointAccessPattern = /^([a-zA-Z][a-zA-Z0-9.-]*)=(none|read-only|unrestricted)$/;

/** Reads entries like `loggers=read-only`; skips invalid ones. */
export function readEndpointAccess(entries: readonly string[]): ReadonlyMap<string, Access> {
  const levels = new Map<string, Access>();
  for (const entry of entries) {
    const [, id, level] = endpointAccessPattern.exec(entry) ?? [];
    const access = accessLevels.find((each) => each === level);
    if (id !== undefined && access !== undefined) levels.set(id, access);
  }
  return levels;
}

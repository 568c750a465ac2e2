/**
 * Reads the second path segment as an id (contract 2.2: "read as an integer"). Ids are positive safe integers in
 * canonical decimal form; undefined for anything else.
 */
export function readUserId(segment: string): number | undefined {
  if (!/^[1-9]\d{0,15}$/.test(segment)) return undefined;
  const id = Number(segment);
  return Number.isSafeInteger(id) ? id : undefined;
}

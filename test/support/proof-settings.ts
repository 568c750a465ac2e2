/** How much a proof does: the whole number in the environment variable `name`, or `fallback`. */
export function proofCount(name: string, fallback: number): number {
  const given = Number(process.env[name] ?? fallback);
  if (!Number.isSafeInteger(given) || given < 1)
    throw new RangeError(`${name} must be a whole number above 0`);
  return given;
}

/** The seed in PORTICO_PROOF_SEED, or one that nobody chose. A proof prints it. */
export function proofSeed(): number {
  return Number(process.env.PORTICO_PROOF_SEED ?? Math.floor(Math.random() * 2 ** 32));
}

/** `npm test` sets it: proofs do a third of their rounds. `npm run proof` and `node --test` do all. */
const isShort = process.env.PORTICO_PROOF === 'short';

/** Whether proofs do all of their rounds. */
export const inFull = !isShort;

/** Why the controls of proofs, which check that a broken program is found, do not run; or false. */
export const withoutControls = isShort && 'only npm run proof has controls';

/** How many rounds a proof does that does `all` of them in full: no fewer than one. */
export function rounds(all: number): number {
  return isShort ? Math.ceil(all / 3) : all;
}

/** How much a proof does: the whole number in the environment variable `name`, or else `all`, or `short` under `npm test`. */
export function proofCount(name: string, all: number, short = rounds(all)): number {
  const given = Number(process.env[name] ?? (isShort ? short : all));
  if (!Number.isSafeInteger(given) || given < 1)
    throw new RangeError(`${name} must be a whole number above 0`);
  return given;
}

/** The seed in PORTICO_PROOF_SEED, or one that nobody chose. A proof prints it. */
export function proofSeed(): number {
  return Number(process.env.PORTICO_PROOF_SEED ?? Math.floor(Math.random() * 2 ** 32));
}

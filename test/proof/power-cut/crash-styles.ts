import type { Random } from '../../support/random.ts';
import type { CrashStyle, Survival } from './file-image.ts';

type Style = (changes: number, random: Random) => Survival;

/** The same decision for a sector each time it is asked for. */
function perSector(decide: () => number): Survival {
  const decided = new Map<number, number>();
  return (sector) => {
    const known = decided.get(sector) ?? decide();
    decided.set(sector, known);
    return known;
  };
}

/** What disks and systems make of writes that nobody has synced. */
const STYLES: readonly Style[] = [
  // Nothing of it was written yet.
  () => () => 0,
  // All of it was, by luck.
  (changes) => () => changes,
  // In order, up to some write.
  (changes, random) => {
    const reached = random.below(changes + 1);
    return () => reached;
  },
  // Each sector at a time of its own: reordered and torn.
  (changes, random) => perSector(() => random.below(changes + 1)),
  // All but a few sectors.
  (changes, random) => perSector(() => (random.chance(0.9) ? changes : random.below(changes + 1))),
  // Only a few sectors.
  (changes, random) => perSector(() => (random.chance(0.9) ? 0 : changes)),
];

export function crashStyle(random: Random): CrashStyle {
  return { sector: random.pick([512, 4096]), survival: random.pick(STYLES) };
}

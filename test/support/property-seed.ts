import fc from 'fast-check';

/**
 * Gives all properties of the process one seed, so that two runs of the same sources try the same cases: what one run
 * finds, every run finds. `PORTICO_TEST_SEED=random` tries other ones, and a number those of that seed.
 */
const given = process.env.PORTICO_TEST_SEED ?? '1';
if (given !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(given) });

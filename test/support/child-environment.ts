/**
 * What every process that a test starts gets of the test's own environment, and nothing else: where programs are, and
 * where compiled code is kept.
 */
export const CHILD_ENVIRONMENT: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
};

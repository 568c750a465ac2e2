/** The runtime, as Actuator's `java` has it for another one. */
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

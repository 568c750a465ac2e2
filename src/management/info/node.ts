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

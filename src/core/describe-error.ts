/** Names a failure in one line, like `TypeError: no host`; whatever was thrown. */
export function describeError(error: unknown): string {
  try {
    if (!(error instanceof Error)) return `Error: ${String(error)}`;
    return `${error.name}: ${error.message || hint(error)}`;
  } catch {
    return 'Error: something was thrown that cannot be described';
  }
}

/** A refused connection to a host with two addresses has no message of its own, only a code. */
function hint(error: Error): string {
  const { code, errors } = error as { readonly code?: unknown; readonly errors?: unknown };
  if (typeof code === 'string') return code;
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined;
  return first instanceof Error ? first.message : 'no message';
}

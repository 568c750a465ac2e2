/** The bytes of a text in lower-case hexadecimal digits; undefined when it is not `length` such bytes. */
export function hexBytes(text: string, length: number): Buffer | undefined {
  return text.length === 2 * length && /^[0-9a-f]*$/.test(text) ? Buffer.from(text, 'hex') : undefined;
}

/**
 * The bytes of a text in base64 with its padding; undefined when it is not `length` such bytes.
 * Another spelling of the same bytes is refused too, so that a changed signature never passes.
 */
export function base64Bytes(text: string, length: number): Buffer | undefined {
  if (text.length !== 4 * Math.ceil(length / 3)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === length && bytes.toString('base64') === text ? bytes : undefined;
}

/** Decodes `length` bytes of lower-case hexadecimal digits; undefined when the text is anything else. */
export function hexBytes(text: string, length: number): Buffer | undefined {
  return text.length === 2 * length && /^[0-9a-f]*$/.test(text) ? Buffer.from(text, 'hex') : undefined;
}

/**
 * Decodes `length` bytes of padded base64; undefined when the text is anything else. Non-canonical encodings are refused
 * too, so that a modified signature never passes.
 */
export function base64Bytes(text: string, length: number): Buffer | undefined {
  if (text.length !== 4 * Math.ceil(length / 3)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === length && bytes.toString('base64') === text ? bytes : undefined;
}

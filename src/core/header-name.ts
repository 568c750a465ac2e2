/** The name of a header in lower case; undefined when the text is none (RFC 9110, 5.1). */
export function headerName(text: string): string | undefined {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text) ? text.toLowerCase() : undefined;
}

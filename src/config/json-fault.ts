/**
 * The offset of the first character that is not JSON; the length of the text if it only ends too early. For
 * texts that JSON.parse refuses, because some of its messages quote the text instead of naming the position.
 */
export function jsonFault(text: string): number {
  let sound = 0;
  let broken = text.length + 1;
  while (broken - sound > 1) {
    const middle = Math.floor((sound + broken) / 2);
    if (canGoOn(text.slice(0, middle))) sound = middle;
    else broken = middle;
  }
  return sound;
}

/** Whether the text is JSON or a prefix of JSON. */
function canGoOn(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    if (error.message.startsWith('Unexpected end of JSON input')) return true;
    if (error.message.startsWith('Unterminated string')) return true;
    const position = /at position (\d+)/.exec(error.message)?.[1];
    return position !== undefined && Number(position) >= text.length;
  }
}

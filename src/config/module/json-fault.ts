/**
 * The offset of the first character with which a text stops being JSON; its length when it only ends too early.
 * For a text that JSON.parse refuses: some of its messages name no position, but show the text instead.
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

/** Whether the text is JSON or the beginning of some. */
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

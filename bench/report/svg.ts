/** Text escaped for XML. */
export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A picture on a white background, so that it is readable on dark pages too. */
export function picture(width: number, height: number, title: string, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}" font-family="system-ui, sans-serif" font-size="12" fill="#222">
<rect width="100%" height="100%" fill="#fff"/>
<text x="12" y="22" font-size="14" font-weight="600">${escaped(title)}</text>
${parts.join('\n')}
</svg>
`;
}

/** A coordinate with one decimal. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

export const ACCENT = '#2563eb';
export const MUTED = '#a3b1c6';

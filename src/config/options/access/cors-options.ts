import { count, list, toggle } from '../option.ts';

/** An origin as browsers write it, or `*`. */
function isOrigin(text: string): boolean {
  if (text === '*') return true;
  if (/^https?:/.test(text))
    return !text.includes('*') && URL.canParse(text) && new URL(text).origin === text;
  return /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]+(?::\d{1,5})?$/.test(text);
}

/** The CORS options of a door. */
export function corsOptions<const D extends 'rest' | 'graphql'>(door: D, title: string) {
  const env = door.toUpperCase();
  const origins = list({
    env: `${env}_CORS_ORIGINS`,
    default: [],
    expected: 'a list of origins like https://app.example.com, without a path, or *',
    pattern: { test: isOrigin },
    description: `Origins whose pages may use the ${title} door, separated by commas; * for every one.`,
  });
  const credentials = toggle({
    env: `${env}_CORS_CREDENTIALS`,
    default: false,
    description: `Whether browsers may send cookies and passwords along from those pages to the ${title} door; tokens in Authorization need it not.`,
  });
  const maxAge = count({
    env: `${env}_CORS_MAX_AGE`,
    default: 600,
    description: `Time for which browsers may remember that a page may use the ${title} door, in seconds.`,
  });
  return {
    [`${door}.cors.origins`]: origins,
    [`${door}.cors.credentials`]: credentials,
    [`${door}.cors.maxAge`]: maxAge,
  } as {
    readonly [K in `${D}.cors.origins`]: typeof origins;
  } & { readonly [K in `${D}.cors.credentials`]: typeof credentials } & {
    readonly [K in `${D}.cors.maxAge`]: typeof maxAge;
  };
}

// What programs import as `portico/rest`.
export { type RestOptions, rest } from './rest.ts';

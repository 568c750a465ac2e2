// The entry `portico/rest` of the package.
export { type RestOptions, rest } from './rest.ts';

/**
 * The endpoints of the console, relative to its page, so that it also works behind a proxy that adds a
 * prefix.
 */
export const API = `${location.pathname.replace(/\/$/, '')}/api/`;

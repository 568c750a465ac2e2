/**
 * The only import of an inner module that the snapshot of the surface has: nothing that the package exports or prints
 * lists the error codes. Where the catalogue moves, this line moves with it.
 */
export { ERROR_CODES } from '../../../src/core/error-codes.ts';

// What makes a document, in one file to load when one is asked for.
export { openApiDocument } from '../../http/openapi/document.ts';
export { managementApi } from './management-api.ts';

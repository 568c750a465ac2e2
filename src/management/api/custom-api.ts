import { type CustomEndpoint, parseParameter } from '../../config/schema/custom-endpoint.ts';
import type { ErrorCode } from '../../core/error-codes.ts';
import { type ApiOperation, type ApiPath, pathParameter } from '../../http/openapi/api.ts';
import { text } from '../../http/openapi/schema.ts';
import { type EndpointPaths, json, WRITE_REFUSALS } from './shapes.ts';

const ANSWER: ApiOperation['replies'][number] = {
  description: 'What the operation returns: a text, bytes, or any other value as JSON.',
  content: { 'text/plain; charset=utf-8': text(), 'application/octet-stream': {}, ...json({}) },
};

const FAILURES = [
  'NOT_FOUND',
  'PARAMETER',
  'CUSTOM_ENDPOINT_TIMEOUT',
] as const satisfies readonly ErrorCode[];

/** The paths of an endpoint that the configuration or the embedding program adds. */
export function customApi(endpoint: CustomEndpoint): EndpointPaths {
  const { id, query = [] } = endpoint;
  const segment = parseParameter(endpoint.path);
  const declared = query.flatMap((name) => parseParameter(name) ?? []);

  function operation(verb: string, last: typeof segment, isWrite: boolean): ApiOperation {
    const inPath = last === undefined ? [] : [pathParameter(last.name, 'A segment of the path.', text())];
    return {
      id: `${verb}_${id.replace(/\W/g, '_')}${last === undefined ? '' : `_${last.name}`}`,
      summary: `The operation ${verb} of ${id}`,
      parameters: [
        ...inPath,
        ...declared.map(({ name, optional }) => ({
          in: 'query' as const,
          name,
          description: 'A parameter of this endpoint.',
          schema: text(),
          required: !optional,
        })),
      ],
      ...(verb === 'write' ? { body: { required: false, content: json({}) } } : {}),
      replies: isWrite ? { 200: ANSWER, 204: { description: 'Done, nothing to say.' } } : { 200: ANSWER },
      refusals: isWrite ? [...FAILURES, ...WRITE_REFUSALS] : FAILURES,
    };
  }

  const pathWith = (last: typeof segment): ApiPath => ({
    ...(endpoint.read && { get: operation('read', last, false) }),
    ...(endpoint.write && { post: operation('write', last, true) }),
    ...(endpoint.delete && { delete: operation('delete', last, true) }),
  });
  return {
    ...(segment?.optional !== false && { [`/${id}`]: pathWith(undefined) }),
    ...(segment !== undefined && { [`/${id}/{${segment.name}}`]: pathWith(segment) }),
  };
}

import { HttpProblem, parseJsonBody } from '@portico/transport';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Audit } from '../../access/audit.ts';
import { isRecord } from '../../core/json.ts';
import { codecOf } from '../../relations/codecs.ts';
import { type Column, type Default, isComputed, USERS } from '../../relations/relation.ts';
import { auditedRequest } from '../audit.ts';
import { jsonReply, methodNotAllowed, NOT_FOUND } from '../management-errors.ts';
import type { Routes } from '../operations.ts';
import type { ConsoleView } from './console-view.ts';

type ConsoleRelations = NonNullable<ConsoleView['relations']>;

interface RelationAccess {
  readonly isReadOnly: boolean;
  /** Why they are hidden; undefined if they are shown. */
  readonly closed: string | undefined;
  readonly audit: Audit | undefined;
}

/** Adds the rows of relations below /rows, whose paths and replies are those of the REST door. */
export function addRelationRows(
  api: FastifyInstance,
  { rows }: ConsoleRelations,
  { isReadOnly, closed, audit }: RelationAccess,
): void {
  const isWrite = ({ method }: FastifyRequest) => method !== 'GET' && method !== 'HEAD';
  api.register(
    async (scope) => {
      if (closed !== undefined) {
        scope.addHook('onRequest', async () => {
          throw new HttpProblem(403, 'CONSOLE_REFUSED', closed);
        });
      }
      if (isReadOnly) {
        scope.addHook('onRequest', async (request) => {
          if (isWrite(request)) throw methodNotAllowed('GET, HEAD');
        });
      }
      if (audit !== undefined) {
        scope.addHook('onResponse', async (request, reply) => {
          if (isWrite(request) && reply.statusCode < 400)
            audit.record(auditedRequest(request, 'relations', scope.prefix));
        });
      }
      await scope.register(rows);
    },
    { prefix: '/rows' },
  );
}

/** The console's route for what the relations are. */
export function relationRoutes(view: ConsoleRelations, isReadOnly: boolean): Routes {
  const { all, areFollowed, verdicts } = view;
  const columnsOf = (relation: string, reference: string) =>
    all.find(({ name }) => name === relation)?.references.find(({ name }) => name === reference);
  const relations = all.map(
    ({ name, one, key, columns, references, inverses, changes, existing, rules }) => ({
      name,
      one,
      key,
      columns: columns.map(describe),
      references: references.map(({ name: reference, to, columns: own, targetColumns }) => {
        return { name: reference, to, columns: own, targetColumns };
      }),
      inverses: inverses.map(({ name: inverse, relation, reference }) => {
        const { columns: there = [], targetColumns: here = [] } = columnsOf(relation, reference) ?? {};
        return { name: inverse, relation, there, here };
      }),
      isWritable: !isReadOnly && name !== USERS && existing?.isView !== true,
      isFollowed: areFollowed && changes && name !== USERS,
      isRuled: rules !== undefined,
    }),
  );
  return {
    '/relations': { get: (ctx) => jsonReply(ctx, { relations }) },
    ...(verdicts && {
      '/row-verdicts': {
        async get(ctx) {
          const { relation = '', key = '', claims = '' } = ctx.query;
          const found = await verdicts(String(relation), String(key), readClaims(String(claims)));
          if (found === undefined) throw NOT_FOUND;
          return jsonReply(ctx, found);
        },
      },
    }),
  };
}

/** The claims of a caller; undefined for one without a token. Throws HttpProblem. */
function readClaims(text: string) {
  if (text === '') return undefined;
  const claims = parseJsonBody(Buffer.from(text));
  if (isRecord(claims)) return claims;
  throw new HttpProblem(400, 'INVALID_PARAMETER', '"claims" takes the claims of a token as a JSON object');
}

/** A column as the pages see it, with its bounds as texts. */
function describe({ name, type, nullable, default: missing, computed, isGenerated = false }: Column) {
  const { kind, ...bounds } = type;
  const { values } = { values: undefined, ...bounds };
  const { max } = { max: undefined, ...bounds };
  return {
    name,
    kind,
    nullable,
    ...(values !== undefined && { values }),
    ...(max !== undefined && { max: String(max) }),
    default: missing === undefined ? null : textOf(type, missing),
    isAssigned: kind === 'serial' && !type.open,
    isComputed: isComputed({ computed, isGenerated }),
  };
}

/** What a column has if a new row does not say it. */
function textOf(type: Column['type'], missing: Default): string {
  if (missing.kind !== 'value') return missing.kind;
  return missing.value === null ? 'null' : codecOf(type).formatText(missing.value);
}

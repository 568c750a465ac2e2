/** Uses every entry, has a delivery handled, and asks a schema that this program's own copy of GraphQL.js made. */
export const PROGRAM = `
import Fastify from 'fastify';
import { GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { createService, defineConfig, loadConfig } from 'portico';
import { openDatabase } from 'portico/database';
import { graphql } from 'portico/graphql';
import { management } from 'portico/management';
import { rest } from 'portico/rest';
import { backlogCheck, replayPlan, webhook } from 'portico/webhook';

for (const each of [createService, defineConfig, graphql, management, rest, backlogCheck, replayPlan]) {
  if (typeof each !== 'function') throw new Error('an entry misses something');
}
const database = await openDatabase('sqlite:inbox.db');
const app = Fastify();
app.addHook('onClose', () => database[Symbol.asyncDispose]());
const handled = Promise.withResolvers<unknown>();
app.register(webhook, { inbox: database.inbox, handlers: { e: ({ data }) => handled.resolve(data) } });
const query = new GraphQLObjectType({
  name: 'Query',
  fields: { own: { type: GraphQLString, resolve: () => 'own schema' } },
});
app.register(graphql, { schema: new GraphQLSchema({ query }) });
app.register(rest, { prefix: '/api', users: database.users });
app.register(management, {});
// The framework's compilers of schemas are its own, found from this package.
const schema = { querystring: { type: 'object', required: ['q'] } };
const reply = await app.inject({ method: 'POST', url: '/webhook', payload: { event: 'e', data: 'here' } });
console.log(reply.body, await handled.promise);
const asked = await app.inject({ method: 'POST', url: '/graphql', payload: { query: '{ own }' } });
console.log(asked.json().data.own);
const created = await app.inject({ method: 'POST', url: '/api/users', payload: { name: 'a', email: 'a@b.cd' } });
console.log(created.statusCode, (await app.inject('/api/users/1')).json().data.name);
console.log((await app.inject('/actuator/health')).json().status);
await app.close();

const config = await loadConfig({
  argv: [],
  env: { GRAPHQL_PORT: '0', REST_PORT: '0', MANAGEMENT_PORT: '0', PORT: '0', SHUTDOWN_PRE_STOP_DELAY: '0', LOG_LEVEL: 'silent' },
  cwd: process.cwd(),
});
const service = await createService(config);
service.doors.rest?.get('/checked', { schema }, () => 'fine');
const urls = await service.listen();
console.log((await fetch(urls.rest + '/checked')).status, (await fetch(urls.rest + '/checked?q=1')).status);
await service.stop();
`;

/** What it prints. */
export const PRINTED = 'Webhook received here\nown schema\n200 a\nUP\n400 200\n';

import { createServer } from 'node:http';
import { postgraphile } from 'postgraphile';
import { makePgService } from 'postgraphile/adaptors/pg';
import { grafserv } from 'postgraphile/grafserv/node';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';
import { address } from './listen.ts';

// The schema of the database that DATABASE_URL names, as PostGraphile's own preset makes it.
const preset = {
  extends: [PostGraphileAmberPreset],
  pgServices: [makePgService({ connectionString: process.env.DATABASE_URL ?? '', poolConfig: { max: 10 } })],
  grafserv: { graphqlPath: '/graphql', websockets: false, watch: false },
  grafast: { explain: false },
};
const server = createServer();
await postgraphile(preset).createServ(grafserv).addTo(server);
server.listen(address);

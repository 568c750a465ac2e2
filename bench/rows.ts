import type { Row } from './row.ts';
import { access } from './rows/access.ts';
import { drivers } from './rows/drivers.ts';
import { fanOut } from './rows/fan-out.ts';
import { graphqlPromises } from './rows/graphql-promises.ts';
import { graphqlUser } from './rows/graphql-user.ts';
import { graphqlUsers } from './rows/graphql-users.ts';
import { growth } from './rows/growth.ts';
import { handling } from './rows/handling.ts';
import { health } from './rows/health.ts';
import { postgres } from './rows/postgres.ts';
import { prometheus } from './rows/prometheus.ts';
import { publish } from './rows/publish.ts';
import { recording } from './rows/recording.ts';
import { relationEmbeds } from './rows/relation-embeds.ts';
import { relationStart, relationTransfers } from './rows/relation-transfers.ts';
import { relationRows } from './rows/relations.ts';
import { restExport, restImport } from './rows/rest-bulk.ts';
import { restCreate } from './rows/rest-create.ts';
import { restList, restListPage, restListPages } from './rows/rest-list.ts';
import { restLongList } from './rows/rest-long-list.ts';
import { restNotModified } from './rows/rest-not-modified.ts';
import { restPage } from './rows/rest-page.ts';
import { restUser } from './rows/rest-user.ts';
import { sendingLatency } from './rows/sending-latency.ts';
import { slowDisk } from './rows/slow-disk.ts';
import { start } from './rows/start.ts';
import { subscriptions } from './rows/subscriptions.ts';
import { tracing } from './rows/tracing.ts';
import { webhook } from './rows/webhook.ts';

/** In the order of the report. */
export const rows: readonly Row[] = [
  graphqlUser,
  graphqlUsers,
  graphqlPromises,
  subscriptions,
  restUser,
  restList,
  restListPage,
  restListPages,
  restLongList,
  restPage,
  restNotModified,
  restCreate,
  restImport,
  restExport,
  ...[...relationRows, ...relationEmbeds, ...relationTransfers, relationStart],
  recording,
  access,
  tracing,
  webhook,
  publish,
  fanOut,
  sendingLatency,
  health,
  prometheus,
  start,
  slowDisk,
  postgres,
  handling,
  drivers,
  growth,
];

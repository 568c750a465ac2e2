import { HttpProblem } from '../../http/problem.ts';
import type { Routes } from '../operations.ts';
import { jsonReply } from '../replies.ts';
import type { TestSender } from './console-view.ts';

/** The sources that a test delivery can come from; a POST sends one. */
export function testDeliveries(sender: TestSender, readOnly: boolean): Routes {
  return {
    '/test-deliveries': {
      get: (exchange) => jsonReply(exchange, { sources: sender.sources() }),
      post: readOnly
        ? undefined
        : async (exchange, body) => {
            const { source, event, data } = readTest(body);
            return jsonReply(exchange, await sender.send(source, event, data));
          },
    },
  };
}

function readTest(body: unknown) {
  const { source, event, data = {} } = Object(body) as Readonly<Record<string, unknown>>;
  if (typeof source === 'string' && typeof event === 'string') return { source, event, data };
  throw new HttpProblem(
    400,
    'TEST_DELIVERY',
    'The body has to be like {"source":"","event":"new_commit","data":{}}',
  );
}

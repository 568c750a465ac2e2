export { BodyBudget } from './body/body-budget.ts';
export { parseJsonBody, parseJsonText } from './body/parse-body.ts';
export { GrowingBuffer } from './body/request-body.ts';
export { type Caller, KnownCaller } from './caller.ts';
export type { Endpoint, Reply, RequestContext } from './endpoint.ts';
export { type ErrorFormat, PROBLEM_TYPE } from './error-format.ts';
export {
  addEndpoint,
  addEndpoints,
  addFields,
  exchangeOf,
  readRawBodies,
  refuseUnrouted,
  routePathOf,
  send,
  sendProblem,
  unroutedHandler,
} from './fastify.ts';
export { HttpProblem, reasonPhrase, toProblem } from './problem.ts';
export { ReplyBudget, takenBy } from './reply/reply-budget.ts';
export { EventStream, eventReply, NO_PIECES } from './reply/reply-streams.ts';
export type { RecordedExchange, ReplyRecorder, RequestTracing } from './request-events.ts';
export { offeredUpgrade, ProtocolSwitch, takeUpgrades } from './server/door-server.ts';
export { LIMITS } from './server/limits.ts';
export { isSecure } from './server/listen.ts';
export { createListener, type Listener } from './server/listener.ts';

export { type Arrival, BodyBudget, type BodySender, bodyBudgetOf } from './body/body-budget.ts';
export { isFormType, parseFormBody, parseJsonBody, parseJsonText } from './body/parse-body.ts';
export { GrowingBuffer } from './body/request-body.ts';
export { type Caller, clientKey, KnownCaller } from './caller.ts';
export type { Endpoint, Reply, RequestContext } from './endpoint.ts';
export { type ErrorFormat, PROBLEM_TYPE } from './error-format.ts';
export {
  addEndpoint,
  addFields,
  exchangeOf,
  readRawBodies,
  refuseUnrouted,
  send,
  sendProblem,
  unroutedHandler,
} from './fastify.ts';
export {
  handlesStrictly,
  parameterOf,
  parseAccept,
  parseWeightedList,
  preferences,
  preferred,
  prefersEventStream,
  prefersHtml,
  STRICT_APPLIED,
  takesEventStream,
  type Weighted,
} from './negotiation.ts';
export { HttpProblem, reasonPhrase, toProblem } from './problem.ts';
export { ReplyBudget, type SentReply, takenBy, type Unread } from './reply/reply-budget.ts';
export { EventStream, eventReply, NO_PIECES, replyBudgetOf } from './reply/reply-streams.ts';
export {
  isAudited,
  type OnRefused,
  type RecordedExchange,
  type ReplyRecorder,
  type RequestSpan,
  type RequestTracing,
  requestFields,
  type TracedRequest,
} from './request-events.ts';
export { offeredUpgrade, ProtocolSwitch, takeUpgrades, type Upgrade } from './server/door-server.ts';
export { hostNameOf, OwnHosts } from './server/guards.ts';
export type { OnRefusedCertificate } from './server/handshakes.ts';
export { LIMITS } from './server/limits.ts';
export { isSecure } from './server/listen.ts';
export { createListener, type Listener } from './server/listener.ts';
export type { LiveCertificate } from './server/tls.ts';

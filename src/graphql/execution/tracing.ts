import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import { type GraphQLResolveInfo, responsePathAsArray } from 'graphql';
import { isThenable } from '../../core/maybe-promise.ts';

/** What subscribers of a channel get. */
type Message = Record<string, unknown>;
export type Channel = TracingChannel<Message>;

/** The channels on which GraphQL.js says what it executes. Parsing and validation are its own, and so are theirs. */
export const channels = {
  execute: tracingChannel<Message>('graphql:execute'),
  subscribe: tracingChannel<Message>('graphql:subscribe'),
  variableCoercion: tracingChannel<Message>('graphql:execute:variableCoercion'),
  rootSelectionSet: tracingChannel<Message>('graphql:execute:rootSelectionSet'),
  resolve: tracingChannel<Message>('graphql:resolve'),
} as const;

const { execute, variableCoercion, rootSelectionSet, resolve } = channels;

/** Whether anybody listens while an operation runs: asked once for each run. */
export function isTraced(): boolean {
  return (
    execute.hasSubscribers ||
    variableCoercion.hasSubscribers ||
    rootSelectionSet.hasSubscribers ||
    resolve.hasSubscribers
  );
}

/** Publishes when a call begins and ends, and how; with a promise, also when that settles. */
export function traced<T>(channel: Channel, message: Message, call: () => T): T {
  if (!channel.hasSubscribers) return call();
  return channel.start.runStores(message, (): T => {
    let result: T;
    try {
      result = call();
    } catch (error) {
      message.error = error;
      channel.error.publish(message);
      channel.end.publish(message);
      throw error;
    }
    if (!isThenable(result)) {
      message.result = result;
      channel.end.publish(message);
      return result;
    }
    channel.end.publish(message);
    return result.then(
      (value: unknown) => {
        message.result = value;
        channel.asyncStart.publish(message);
        channel.asyncEnd.publish(message);
        return value;
      },
      (error: unknown) => {
        message.error = error;
        channel.error.publish(message);
        channel.asyncStart.publish(message);
        channel.asyncEnd.publish(message);
        throw error;
      },
    ) as T;
  });
}

/** Says that a field is resolved. */
export function resolveMessage(
  { fieldName, path, parentType, returnType }: GraphQLResolveInfo,
  args: unknown,
  isDefaultResolver: boolean,
): Message {
  let fieldPath: string | undefined;
  return {
    fieldName,
    alias: String(path.key),
    parentType: parentType.name,
    fieldType: String(returnType),
    args,
    isDefaultResolver,
    get fieldPath() {
      fieldPath ??= responsePathAsArray(path).join('.');
      return fieldPath;
    },
  };
}

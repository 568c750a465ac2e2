/** What a notification announces: new jobs, new users, or what a program has enqueued. */
export type Topic = 'work' | 'users' | 'enqueued';

export const TOPICS: readonly Topic[] = ['work', 'users', 'enqueued'];

const PREFIX = 'portico_';

/** The channel of a topic. */
export function channelOf(topic: Topic): string {
  return `${PREFIX}${topic}`;
}

/** The topic of a channel. */
export function topicOf(channel: string): Topic {
  return channel.slice(PREFIX.length) as Topic;
}

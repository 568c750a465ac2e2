// Preloaded into a process, it measures how much processor time a turn of the event loop takes on the main thread, and
// tells the longest since it was asked last on the Unix socket that PORTICO_TURNS names. A machine that is busy with
// other programs lets a turn take longer, but no more processor time.
import { createServer } from 'node:net';
import { isMainThread } from 'node:worker_threads';

const address = process.env.PORTICO_TURNS;
if (isMainThread && address !== undefined) {
  let longest = 0;
  let before = process.threadCpuUsage();
  const look = () => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    longest = Math.max(longest, (user + system) / 1_000);
  };
  // Shorter turns are told together, which adds a millisecond at most.
  setInterval(look, 1).unref();
  const server = createServer((client) => {
    look();
    client.end(String(longest));
    longest = 0;
  });
  server.listen(address).unref();
}

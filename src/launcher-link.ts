/** The server's end of the channel to bin/launch.js. */

/**
 * Calls back once when the launcher that started this process has gone, killed or not; never when there was none.
 * The channel alone does not keep the process alive.
 */
export const onLauncherGone = (callback: () => void): void => {
  if (process.channel === undefined) return;
  if (!process.connected) return void queueMicrotask(callback);
  process.once('disconnect', callback);
  process.channel.unref();
};

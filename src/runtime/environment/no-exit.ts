/**
 * `process.exit` in a Worker ends no process: it cancels the invocation without anything that could be caught, so that a
 * rollout whose hook calls it would wait for ever, and with it the object that plays it. Here it is an error like any other,
 * as are its two other names. An environment that imports them from `process` gets these, too: its bundle puts the global in
 * the place of that module (local/bundle.ts).
 */

/** To be called before any code of an environment runs. */
export function refuseExit(): void {
  process.exit = () => refuse("exit");
  process.abort = () => refuse("abort");
  Object.assign(process, { reallyExit: () => refuse("reallyExit") });
}

function refuse(name: string): never {
  throw new Error(`process.${name} was called: an environment has no process of its own to end`);
}

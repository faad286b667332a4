/** Runs code as if on another day: what it makes of the date then differs, however coarsely it reads it. */

/** Another year, month, hour, minute and second. */
const SHIFT_MS = (400 * 24 * 3600 + 3661) * 1000;

/** The clock of the whole process is shifted until the promise settles. */
export async function onAnotherDay<T>(run: () => Promise<T>): Promise<T> {
  const real = Date;
  const now = () => real.now() + SHIFT_MS;
  globalThis.Date = new Proxy(real, {
    apply: () => new real(now()).toString(),
    construct: (target, given, newTarget) => Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
    get: (target, key) => (key === "now" ? now : Reflect.get(target, key)),
  });
  try {
    return await run();
  } finally {
    globalThis.Date = real;
  }
}

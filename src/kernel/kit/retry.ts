/**
 * Calls an object again if the object was evicted or restarted during the call. What its caller holds (a model's
 * answer, a judge's result) may be the only copy, and another one costs as much as the first. `call` takes a new stub
 * each time, because a stub whose object has gone stays broken.
 */

const TRIES = 3;

export async function retry<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (thrown) {
      const overloaded = thrown instanceof Error && "overloaded" in thrown;
      if (tries === TRIES || overloaded) throw thrown;
    }
  }
}

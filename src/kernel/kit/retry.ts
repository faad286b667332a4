/**
 * Calls an object once more when it went while it was called: what its caller holds (a model's answer, a judge's result)
 * may be the only one, and another costs as much as the first. `call` takes a new stub each time, since a stub whose
 * object has gone stays broken.
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

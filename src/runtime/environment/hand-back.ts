/**
 * Hands a model's answer to the object that waits for it. Whoever holds it holds the only one, and a second costs as much
 * as the first: an object that went while it was called is addressed again. `call` takes a stub of its own each time,
 * since one whose object went stays broken.
 */
const TRIES = 3;

export async function handBack<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (thrown) {
      const overloaded = thrown instanceof Error && "overloaded" in thrown;
      if (tries === TRIES || overloaded) throw thrown;
    }
  }
}

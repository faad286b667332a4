/**
 * How the process before this one ended. Locally whoever starts workerd knows, and says so through LAST_END; a deployment
 * has no such binding, and an alarm that is repeated says it of its own object alone.
 */

interface LocalEnv extends Env {
  readonly LAST_END?: Fetcher;
}

let deaths: number | undefined;
let boot: string | undefined;

/**
 * How many processes before this one, one after the other, were ended by whatever they did: they died, or they hung until
 * they were ended. 0: the last one was stopped in order, or there was none.
 */
export async function deathsBefore(env: LocalEnv): Promise<number> {
  if (deaths !== undefined || env.LAST_END === undefined) return deaths ?? 0;
  const reply = await env.LAST_END.fetch("http://last-end/");
  const said = await reply.json<{ deaths: number }>();
  deaths = said.deaths;
  return deaths;
}

/** This process (deployed: this isolate), and no other. */
export function bootId(): string {
  boot ??= crypto.randomUUID();
  return boot;
}

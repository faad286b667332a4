/**
 * How the process before this one ended. Locally whoever starts workerd knows, and says so through LAST_END; a deployment
 * has no such binding, and an alarm that is repeated says it of its own object alone.
 */

interface LocalEnv extends Env {
  readonly LAST_END?: Fetcher;
}

/** How the processes before this one ended, one soon after the other. */
export interface LastEnd {
  /** Of how many nobody says that they were stopped in order: they died, hung until they were ended, or were killed. */
  readonly deaths: number;
  /** How many of these died or hung by what they did themselves. */
  readonly byItself: number;
}

const IN_ORDER: LastEnd = { deaths: 0, byItself: 0 };

let told: LastEnd | undefined;
let boot: string | undefined;

/** Answered once the platform is through its boot: whoever asks is about to do what may have ended the process before. */
export async function lastEnd(env: LocalEnv): Promise<LastEnd> {
  if (told !== undefined || env.LAST_END === undefined) return told ?? IN_ORDER;
  const reply = await env.LAST_END.fetch("http://last-end/");
  told = await reply.json<LastEnd>();
  return told;
}

/** This process (deployed: this isolate), and no other. */
export function bootId(): string {
  boot ??= crypto.randomUUID();
  return boot;
}

/** `--judge NAME=MODEL@ENDPOINT`: who answers for a judge, by an endpoint the platform knows, or by a URL. */
import { urlOf, variableNamedBy } from "../argument-values.ts";
import { usageError } from "../exit.ts";

interface Target {
  readonly model: string;
  readonly endpoint: string | { readonly base_url: string; readonly api_key?: string };
}

/** `keyVariable` holds the key of those given by URL; left out, OPENAI_API_KEY does, where it is set. */
export function judgeTargets(given: readonly string[], keyVariable?: string): Record<string, Target> {
  const named = given.map((text) => targetOf(text, keyVariable));
  if (keyVariable !== undefined && !named.some(([, { endpoint }]) => typeof endpoint === "object")) {
    const message = "--judge-key-var: goes with a --judge that is given by URL";
    throw usageError(message, "judge-key-var");
  }
  return Object.fromEntries(named);
}

/** A model's name may hold an @; the name of an endpoint, and a URL from its scheme on, do not. */
function targetOf(text: string, keyVariable: string | undefined): [string, Target] {
  const [, name, model, endpoint] = /^([^=]+)=(.+)@([^@]+)$/s.exec(text) ?? [];
  if (name === undefined || model === undefined || endpoint === undefined) {
    throw usageError(`--judge: ${text} is not NAME=MODEL@ENDPOINT`, "judge");
  }
  if (!/^https?:/i.test(endpoint)) return [name, { model, endpoint }];
  const base_url = urlOf("judge", endpoint) ?? endpoint;
  const own = variableNamedBy("judge-key-var", keyVariable);
  const api_key = own ?? (process.env["OPENAI_API_KEY"] || undefined);
  return [name, { model, endpoint: { base_url, ...(api_key !== undefined && { api_key }) } }];
}

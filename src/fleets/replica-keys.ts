/**
 * Finds a stored key that a patch would send to a server it was not given for. Otherwise anyone who may patch a replica
 * could have its key sent to their own server. If there is no control key, the control side gets `api_key`.
 */
interface Stored {
  readonly base_url: string;
  readonly control_url: string | null;
  readonly sealed_key: string | null;
  readonly sealed_control_key: string | null;
}

interface Patch {
  readonly base_url?: string | undefined;
  readonly control_url?: string | null | undefined;
  readonly api_key?: string | null | undefined;
  readonly control_key?: string | null | undefined;
}

type KeyName = "api_key" | "control_key";

/** The key that must be given again; null if each stored key goes to the same server as before. */
export function strayKey(before: Stored, patch: Patch): KeyName | null {
  const was = serversOf(before);
  const is = serversOf({ ...before, ...defined(patch) });
  const keptControl = patch.control_key === undefined && before.sealed_control_key !== null;
  if (keptControl && is.control !== was.control) return "control_key";
  if (patch.api_key !== undefined || before.sealed_key === null) return null;
  if (is.base !== was.base) return "api_key";
  const hadOwn = before.sealed_control_key !== null;
  const hasOwn = patch.control_key === undefined ? hadOwn : patch.control_key !== null;
  const known = hadOwn ? [was.base] : [was.base, was.control];
  return hasOwn || known.includes(is.control) ? null : "control_key";
}

function serversOf({ base_url, control_url }: Pick<Stored, "base_url" | "control_url">) {
  return { base: new URL(base_url).origin, control: new URL(control_url ?? base_url).origin };
}

function defined({ base_url, control_url }: Patch): Partial<Pick<Stored, "base_url" | "control_url">> {
  return { ...(base_url !== undefined && { base_url }), ...(control_url !== undefined && { control_url }) };
}

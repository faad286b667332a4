/** Some endpoints repeat the key they refuse; what they say is stored and shown, and the key must be in neither. */
import { formsOf } from "../core/redact.ts";

export function withoutKey(text: string, api_key: string | null): string {
  if (api_key === null || api_key === "") return text;
  return formsOf(api_key).reduce((rest, form) => rest.replaceAll(form, "[key]"), text);
}

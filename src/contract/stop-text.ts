/** Stop conditions in the words of people. The stored names stay what the API, filters and environments use. */

/** Names that read like a failure, although a rollout usually ends so. */
const TEXTS: ReadonlyMap<string, string> = new Map([["no_tools_called", "answer without a tool call"]]);

/** What a rollout was stopped by; a name that needs no other words is returned as it is. */
export function stopText(name: string): string {
  return TEXTS.get(name) ?? name;
}

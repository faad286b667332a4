/** A misspelt option must not be ignored: constructors refuse what they do not know, by name. */
export function refuseUnknownOptions(owner: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  throw new TypeError(`${owner} has no option ${unknown.join(", ")}; it takes ${known.join(", ")}`);
}

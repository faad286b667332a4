/** The members that were given: those a request left out are not there, rather than undefined. */
export function given<T extends object>(request: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const members = Object.entries(request).filter(([, value]) => value !== undefined);
  return Object.fromEntries(members) as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}

/** The members that a request has. Members with the value undefined are left out. */
export function given<T extends object>(request: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const members = Object.entries(request).filter(([, value]) => value !== undefined);
  return Object.fromEntries(members) as { [Name in keyof T]?: Exclude<T[Name], undefined> };
}

/** The page of ours that follows a sign-in: a path, never another site's address, whatever a link says. */
export function destinationOf(to: string | null): string {
  if (to === null || !/^\/(?![/\\])[^\p{Cc}]*$/u.test(to) || to.startsWith("/sign-in")) return "/";
  return to;
}

/**
 * The page to open after signing in: always a path of this site, never a URL of another one, whatever the link
 * contains.
 */
export function destinationOf(to: string | null): string {
  if (to === null || !/^\/(?![/\\])[^\p{Cc}]*$/u.test(to) || to.startsWith("/sign-in")) return "/";
  return to;
}

/** Shows that something is loading. It appears after a moment, so that quick replies do not flicker. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <p className="loading soft" role="status">
      Loading {what} …
    </p>
  );
}

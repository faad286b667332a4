/** Any JSON as text of limited length, with a button that copies all of it. */
import { useMemo } from "react";
import { CopyButton } from "./copy-button.tsx";
import { ShownBlock } from "./shown.tsx";

export function JsonView({ value, what }: { readonly value: unknown; readonly what: string }) {
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? "undefined", [value]);
  return (
    <div>
      <CopyButton text={text} what={what} />
      <ShownBlock text={text} label={what} />
    </div>
  );
}

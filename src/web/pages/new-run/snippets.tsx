/** The run in the form, as commands and code that start the same run. */
import { useState } from "react";
import type { JsonObject } from "../../../contract/json.ts";
import { CopyButton } from "../../components/copy-button.tsx";
import { ShownBlock } from "../../components/shown.tsx";
import { isLocal, SNIPPETS, snippetOf } from "./print-snippet.ts";

export function Snippets({ request }: { readonly request: JsonObject }) {
  const [kind, setKind] = useState<(typeof SNIPPETS)[number]>("CLI");
  const text = snippetOf(kind, request, location.origin);
  return (
    <aside className="snippets" aria-labelledby="same-run">
      <h2 id="same-run">The same run as</h2>
      <div className="row">
        {SNIPPETS.map((one) => (
          <button key={one} type="button" aria-pressed={one === kind} onClick={() => setKind(one)}>
            {one}
          </button>
        ))}
        <CopyButton text={text} what={kind} />
      </div>
      <ShownBlock text={text} label={kind} />
      <p className="soft">
        {isLocal(location.origin)
          ? "The command works in the folder of this platform. "
          : "ROLLCALL_API_KEY must hold a key of this platform. "}
        Keys are read from variables, never written in the text.
      </p>
    </aside>
  );
}

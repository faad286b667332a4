/** The commands that use a published version, to copy. */
import type { PublishedVersion } from "../../../contract/published-environment.ts";
import { CopyButton } from "../../components/copy-button.tsx";

export function Commands({ id }: Pick<PublishedVersion, "id">) {
  const commands = [
    ["to run it", `rollcall eval ${id} -m MODEL -b https://your-endpoint/v1`],
    ["to download its files", `rollcall env pull ${id}`],
    ["to copy it to another platform", `rollcall env install ${id} --from PROFILE`],
  ] as const;
  return (
    <>
      <h2>Use it</h2>
      {commands.map(([what, text]) => (
        <div key={what} className="command">
          <div className="row">
            <span className="soft">{what}</span>
            <CopyButton text={text} what="command" />
          </div>
          <pre>{text}</pre>
        </div>
      ))}
      <p className="soft">MODEL is the name of your model. PROFILE is the profile of this platform on your machine.</p>
    </>
  );
}

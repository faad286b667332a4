/** The commands that use a published version, to copy. */
import type { PublishedVersion } from "../../../contract/published-environment.ts";
import { CopyButton } from "../../components/copy-button.tsx";
import { ROLLCALL } from "../new-run/print-snippet.ts";

export function Commands(version: PublishedVersion) {
  const { id, kind, visibility } = version;
  const isPython = kind === "python";
  return (
    <>
      <h2>Use it</h2>
      {isPython ? (
        <Command what="to install it" text={installCommand(version)} />
      ) : (
        <Command what="to run it" text={`${ROLLCALL} eval ${id} -m MODEL -b https://your-endpoint/v1`} />
      )}
      <Command what="to download its files" text={`${ROLLCALL} env pull ${id}`} />
      <Command what="to copy it to another platform" text={`${ROLLCALL} env install ${id} --from PROFILE`} />
      <p className="soft">
        {!isPython && "MODEL is the name of your model. "}
        {isPython && visibility !== "public" && "KEY is a key of one project. "}
        PROFILE is the profile of this platform on your machine.
      </p>
    </>
  );
}

interface CommandProps {
  /** What the command is for: "to run it". */
  readonly what: string;
  readonly text: string;
}

export function Command({ what, text }: CommandProps) {
  return (
    <div className="command">
      <div className="row">
        <span className="soft">{what}</span>
        <CopyButton text={text} what="command" />
      </div>
      <pre>{text}</pre>
    </div>
  );
}

/** The command of pip that installs a wheel from this platform. What is not public needs a key of its project. */
export function installCommand({ name, version, visibility }: PublishedVersion): string {
  const [owner = "", project = ""] = name.split("/");
  const key = visibility === "public" ? "" : "__token__:KEY@";
  const index = `${location.protocol}//${key}${location.host}/python/${owner}/simple/`;
  return `pip install --index-url ${index} --no-deps ${project}==${version}`;
}

/** What to do on a platform without runs: three commands to paste. */
import { Link } from "@tanstack/react-router";
import { CopyButton } from "./copy-button.tsx";

/** Runs the installed Rollcall. Without it, npm would fetch a package of this name that is not ours. */
export const ROLLCALL = "npx --no-install rollcall";

interface Step {
  readonly name: string;
  readonly command: string;
}

/** A command in the folder of a local platform finds it by itself. */
function stepsAt({ hostname, origin }: Pick<Location, "hostname" | "origin">): readonly Step[] {
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  const first: Step = isLocal
    ? {
        name: "Play an eval with the small model that comes with a local platform",
        command: `${ROLLCALL} eval calculator -n 5 -r 2`,
      }
    : {
        name: "Log in on the command line; it asks for an API key",
        command: `${ROLLCALL} login --platform ${origin}`,
      };
  return [
    first,
    {
      name: "Add your model's endpoint, with the variable that holds its key",
      command: `${ROLLCALL} endpoint add mine -b https://your-endpoint/v1 -k OPENAI_API_KEY`,
    },
    { name: "Evaluate your model", command: `${ROLLCALL} eval calculator -e mine -m MODEL -n 20 -r 2` },
  ];
}

export function FirstSteps() {
  return (
    <section className="first-steps" aria-label="First steps">
      <p>There are no runs yet. The first three things to do, in the folder where Rollcall is installed:</p>
      <ol>
        {stepsAt(location).map(({ name, command }) => (
          <li key={name}>
            {name} <CopyButton text={command} what="command" />
            <pre>{command}</pre>
          </li>
        ))}
      </ol>
      <p>
        Or <Link to="/runs/new">start a run here</Link>.
      </p>
    </section>
  );
}

/** What to do on a platform without runs: three commands to paste. */
import { Link } from "@tanstack/react-router";
import { isLocal, ROLLCALL } from "../pages/new-run/print-snippet.ts";
import { CopyButton } from "./copy-button.tsx";

interface Step {
  readonly name: string;
  readonly command: string;
}

function stepsAt(origin: string): readonly Step[] {
  const first: Step = isLocal(origin)
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
        {stepsAt(location.origin).map(({ name, command }) => (
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

/** `rollcall deploy repair`. */
import { DEPLOYMENT_FILE } from "../../local/deployment-file.ts";
import type { Repaired } from "../backup/repair.ts";
import { command } from "../command-line.ts";
import { EXIT } from "../exit.ts";
import { printJson, terminal } from "../terminal/terminal.ts";

export const REPAIR = command({
  name: "deploy repair",
  help: "make the rows of runs again after the database was restored to an earlier time",
  more: `After D1 alone was taken back, for example by Cloudflare's Time Travel, it lacks the runs that were created since. Their
objects and files are newer and know them. The command finds them by an index in R2, writes their rows again, and brings
rows that are older than their runs up to date. Repeating it changes nothing. Runs whose project the database does not have
are listed and not restored. Ctrl-C stops it; --after continues where it stopped.`,
  flags: {
    name: { value: "NAME", help: "the deployment: prod" },
    preview: { help: "the preview of this deployment" },
    file: { value: "FILE", help: `the file with the deployments; default ${DEPLOYMENT_FILE}` },
    after: { value: "PLACE", help: "continue at this place, which an interrupted repair has printed" },
    json: { help: "exactly one JSON object on stdout" },
  },
  async run(line) {
    line.none();
    const term = terminal(line.on("json"));
    const { deploymentName, operatorOf, untilInterrupted } = await import("../deploy/deployment.ts");
    const { repairDeployment } = await import("../backup/repair.ts");
    const name = deploymentName(line.text("name"), line.on("preview"));
    let place = line.text("after");
    const goOn = () => (place === undefined ? "the same command begins again" : `continue with --after '${place}'`);
    const done = await untilInterrupted(goOn, async (signal) => {
      const operator = await operatorOf({ file: line.text("file") ?? DEPLOYMENT_FILE, name }, signal);
      const onPart = ({ next }: Repaired) => {
        place = next ?? place;
      };
      return await repairDeployment(operator, place, { log: term.log, onPart });
    });
    for (const { organization_id, project_id, run_id } of done.unowned) {
      term.log(`${run_id} has no row: the database has no project ${project_id} of ${organization_id}`);
    }
    for (const { run_id, message } of done.failed) term.log(`${run_id} could not be repaired: ${message}`);
    term.print(repairedText(done));
    if (done.failed_runs > 0) term.log("some runs could not be repaired: repeat the command");
    if (line.on("json")) printJson(done);
    return done.failed_runs > 0 ? EXIT.bad : EXIT.good;
  },
});

function repairedText({ checked, restored, updated, indexed, deleted, unowned_runs, failed_runs }: Repaired): string {
  const left = `${unowned_runs} without a project, ${failed_runs} failed`;
  return `${checked} runs checked: ${restored} restored, ${updated} updated, ${left}; index: ${indexed} added, ${deleted} deleted`;
}

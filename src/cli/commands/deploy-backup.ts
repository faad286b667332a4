/** `rollcall deploy backup` and `rollcall deploy restore`. */
import { DEPLOYMENT_FILE } from "../../local/deployment-file.ts";
import type { BackedUp } from "../backup/back-up.ts";
import { type CommandLine, command, type Flags } from "../command-line.ts";
import { EXIT } from "../exit.ts";
import { printJson, terminal } from "../terminal/terminal.ts";

const FLAGS = {
  name: { value: "NAME", help: "the deployment: prod" },
  preview: { help: "the preview of this deployment" },
  file: { value: "FILE", help: `the file with the deployments; default ${DEPLOYMENT_FILE}` },
  endpoint: { value: "URL", help: "address of the S3-compatible store; default AWS_ENDPOINT_URL_S3, else Amazon's" },
  json: { help: "exactly one JSON object on stdout" },
} as const satisfies Flags;

const STORE = `Any S3-compatible store will do: Amazon S3, R2, MinIO. Its keys are in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
AWS_SESSION_TOKEN, its region in AWS_REGION. ROLLCALL_SECRET is read from rollcall.NAME.secrets.json, and is not in the
backup: keep a copy of it elsewhere.`;

const BACKUP = command({
  name: "deploy backup",
  help: "copy a deployment's data to an S3 bucket, while it works",
  more: `Rows of D1, files of R2 and the storage of objects, with runs that have not ended. What the bucket has already is not
copied again. An interrupted backup is continued by the same command; until it is complete, the bucket has the one before.
${STORE}`,
  flags: { ...FLAGS, to: { value: "S3-URL", help: "where to: s3://BUCKET/PREFIX" } },
  async run(line) {
    line.none();
    const term = terminal(line.on("json"));
    const done = await atBucket(line, "to", async ({ operator, blobs }) => {
      const { backUp } = await import("../backup/back-up.ts");
      return await backUp(operator, blobs, new Date(), term.log);
    });
    term.print(backedUpText(done));
    if (line.on("json")) printJson(done);
    return EXIT.good;
  },
});

function backedUpText({ rows, objects, files, stored, found }: BackedUp): string {
  return `backup complete: ${rows} rows, ${objects} objects, ${files} files; ${stored} blobs were stored, ${found} were there`;
}

const RESTORE = command({
  name: "deploy restore",
  help: "restore a backup into an empty deployment with the same secret",
  more: `The deployment is made by rollcall deploy --empty, by the release that made the backup, with the ROLLCALL_SECRET of the
deployment that was backed up in its rollcall.NAME.secrets.json. Keys, datasets, results and the ledger are as they were.
Runs that had not ended continue. An interrupted restore is continued by the same command.
${STORE}`,
  flags: { ...FLAGS, from: { value: "S3-URL", help: "where the backup is: s3://BUCKET/PREFIX" } },
  async run(line) {
    line.none();
    const term = terminal(line.on("json"));
    const done = await atBucket(line, "from", async ({ operator, blobs }) => {
      const { restoreBackup } = await import("../backup/restore.ts");
      return await restoreBackup(operator, blobs, term.log);
    });
    const { made_at, tables, objects, files } = done;
    term.print(`restored the backup of ${made_at}: ${tables} tables, ${objects} objects, ${files} files`);
    if (line.on("json")) printJson(done);
    return EXIT.good;
  },
});

const AGAIN = "the same command continues where this one stopped";

/** Runs a command on a deployment and a bucket, until Ctrl-C. The modules are loaded only here. */
async function atBucket<Flag extends "to" | "from", T>(
  line: CommandLine<keyof typeof FLAGS | Flag>,
  flag: Flag,
  work: (at: {
    readonly operator: import("../backup/operator-client.ts").OperatorClient;
    readonly blobs: import("../backup/blobs.ts").Blobs;
  }) => Promise<T>,
): Promise<T> {
  const { deploymentName, operatorOf, untilInterrupted } = await import("../deploy/deployment.ts");
  const { Blobs, bucketAddress } = await import("../backup/blobs.ts");
  const name = deploymentName(line.text("name"), line.on("preview"));
  const address = bucketAddress(flag, line.text(flag), line.text("endpoint"), process.env);
  return await untilInterrupted(AGAIN, async (signal) => {
    const operator = await operatorOf({ file: line.text("file") ?? DEPLOYMENT_FILE, name }, signal);
    return await work({ operator, blobs: new Blobs(address, process.env, signal) });
  });
}

export const BACKUP_COMMANDS = [BACKUP, RESTORE] as const;

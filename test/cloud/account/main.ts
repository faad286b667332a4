/**
 * `npm run test:cloud -- --account ID [--keep]`: answers the open questions about Cloudflare on a real account, and
 * writes a report. CONTRIBUTING.md says what it needs and costs.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { askAloud, isAsking } from "../../../src/cli/confirm.ts";
import { catchInterrupts } from "../../../src/cli/interrupt.ts";
import { PACKAGE_ROOT } from "../../../src/local/package-root.ts";
import { type AccountTest, deleteTest, runAccountTest } from "./account-test.ts";
import { FULL, SHORT, type Sizes } from "./bench.ts";
import { reportText } from "./report.ts";

const USAGE = `npm run test:cloud -- --account ID

Deploys a preview of Rollcall and a probe Worker to a Cloudflare account (Workers Paid, R2 enabled), measures the open
questions, writes a report, and deletes everything. It uses the login of wrangler or CLOUDFLARE_API_TOKEN.

  --account ID     the account
  --yes            do not ask for confirmation
  --keep           delete nothing at the end
  --destroy NAME   only delete what the test NAME left behind
  --out FOLDER     where the reports go; default dist/cloud-test/NAME
  --peer URL       a server outside of Cloudflare that is silent and streams: test/cloud/account/peer.ts
  --short          tiny sizes: tries the command, and answers nothing
  --url, --probe-url URL   addresses of the platform and of the probe Worker, if they are not below workers.dev
`;

const log = (line: string) => process.stderr.write(`${line}\n`);

/** What the test takes at most, in words. */
export function estimate(sizes: Sizes): string {
  const { streamS, analyticsLimitS, bodiesMb, rollouts, turnS, queries, queryS } = sizes;
  const runS = (rollouts / 12) * 4 * turnS;
  const objectS = 2 * streamS + sizes.silentS[0] + sizes.silentS[1] + 5 * runS + 600;
  const dollars = (objectS * 0.128 * 12.5) / 1e6 + 0.02;
  const minutes = (2 * streamS + runS + queries * queryS + analyticsLimitS + 600) / 60;
  return [
    `At most ${Math.ceil(minutes)} minutes, and about $${dollars.toFixed(2)} of usage if the quotas of the plan are spent:`,
    `  ${Math.round(objectS)} s of objects, ${rollouts + 4} rollouts against a model of its own, ${queries} slow queries to D1,`,
    `  ${bodiesMb.reduce((sum, mb) => sum + mb, 0)} MB uploaded from this machine. No model provider is called.`,
  ].join("\n");
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      ...{
        account: { type: "string" },
        out: { type: "string" },
        peer: { type: "string" },
        destroy: { type: "string" },
      },
      ...{ url: { type: "string" }, "probe-url": { type: "string" } },
      ...{ yes: { type: "boolean" }, keep: { type: "boolean" }, short: { type: "boolean" }, help: { type: "boolean" } },
    },
  });
  const { account } = values;
  if (values.help || account === undefined) {
    process.stderr.write(USAGE);
    return values.help ? 0 : 2;
  }
  const name = values.destroy ?? `test-${randomBytes(3).toString("hex")}`;
  const folder = resolve(values.out ?? join(PACKAGE_ROOT, "dist/cloud-test", name));
  // The key of the preview is not stored among the user's own.
  process.env["ROLLCALL_CONFIG"] = join(folder, "config.json");
  using interrupt = catchInterrupts();
  const { signal } = interrupt;
  const again = `npm run test:cloud -- --account ${account} --destroy ${name} --out ${folder}`;
  if (values.destroy !== undefined) {
    const { left } = await deleteTest({ name, accountId: account, folder, log }, signal, null);
    return sayLeft(left, again);
  }
  const sizes = values.short ? SHORT : FULL;
  log(`${estimate(sizes)}\nEverything is named rollcall-${name}… in the account ${account}.`);
  if (!values.yes && !(isAsking() && (await askAloud("Type yes to begin: ", signal)) === "yes")) {
    log("Nothing was created: confirm with --yes.");
    return 2;
  }
  return await testAndReport(
    { name, accountId: account, folder, sizes, signal, log, keep: values.keep === true, ...addresses(values) },
    again,
  );
}

const addresses = (values: { url?: string; "probe-url"?: string; peer?: string }) => ({
  ...{ url: values.url, probeUrl: values["probe-url"], peer: values.peer },
});

/** Returns the exit code: 1 if a measurement differs, the test ended early, or something is left. */
async function testAndReport(asked: AccountTest, again: string): Promise<number> {
  const { folder } = asked;
  mkdirSync(folder, { recursive: true });
  const report = await runAccountTest(asked);
  writeFileSync(join(folder, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(folder, "report.md"), reportText(report));
  for (const { id, verdict, says } of report.answers) log(`${verdict.padEnd(10)} ${id}: ${says}`);
  process.stdout.write(`${join(folder, "report.md")}\n`);
  if (report.ended !== null) log(`Ended early: ${report.ended}.`);
  if (report.left === null) log(`Everything was kept. Delete it with:\n  ${again}`);
  const clean = report.left === null ? 0 : sayLeft(report.left, again);
  return report.ended !== null || report.answers.some(({ verdict }) => verdict === "differs") ? 1 : clean;
}

function sayLeft(left: readonly string[], again: string): number {
  if (left.length === 0) return 0;
  log(["Left at Cloudflare:", ...left.map((what) => `  ${what}`), `Delete it with:\n  ${again}`].join("\n"));
  return 1;
}

process.exitCode = await main();

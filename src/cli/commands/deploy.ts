/** `rollcall deploy check`: finds what is missing or wrong in a deployment, before it is made and once it answers. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Finding } from "../../local/check-deployment.ts";
import { PACKAGE_ROOT } from "../../local/package-root.ts";
import { WORKER_BYTES } from "../../local/worker-bytes.ts";
import { urlOf } from "../argument-values.ts";
import { command } from "../command-line.ts";
import { EXIT, usageError } from "../exit.ts";
import { printJson, terminal } from "../terminal/terminal.ts";
import { safeLine } from "../terminal/text.ts";

const CONFIG = "wrangler.toml";
const MARKS: Readonly<Record<Finding["level"], string>> = { error: "✗", warning: "!" };

const CHECK = command({
  name: "deploy check",
  help: "check a deployment: its wrangler.toml, its bundle and its URL",
  more: `Nothing is deployed, and Cloudflare is not called. docs/deploy.md leads from an empty account to the first run.`,
  flags: {
    config: { value: "FILE", help: `the wrangler.toml to check; default ${CONFIG}` },
    bundle: { help: "bundle the Worker, like wrangler deploy --dry-run, and check its size" },
    url: { value: "URL", help: "also check the platform at this URL, with the key in ROLLCALL_API_KEY" },
    json: { help: "exactly one JSON object on stdout: {ok, findings, bundle_bytes}" },
  },
  async run(line) {
    line.none();
    const file = line.text("config") ?? CONFIG;
    const url = urlOf("url", line.text("url"));
    if (url !== undefined && !/^https?:/i.test(url))
      throw usageError(`--url: ${url} is not an http or https URL`, "url");
    if (!existsSync(file)) throw usageError(`--config: the file ${file} does not exist`, "config");
    const term = terminal(line.on("json"));
    const bundle = line.on("bundle") ? await checkBundle(file) : { findings: [], bytes: null };
    const findings = [
      ...(await checkConfig(file)),
      ...bundle.findings,
      ...(url === undefined ? [] : await checkPlatform(url)),
    ];
    const ok = findings.every(({ level }) => level !== "error");
    term.print(reportText(file, findings, bundle.bytes));
    if (line.on("json")) printJson({ ok, findings, bundle_bytes: bundle.bytes });
    return ok ? EXIT.good : EXIT.bad;
  },
});

/** Loads the reader of wrangler.toml only here: wrangler takes more than a second to load. */
async function checkConfig(file: string): Promise<Finding[]> {
  const { neededBindings, readDeployment, UnreadableConfig } = await import("../../local/deployment.ts");
  const { checkDeployment } = await import("../../local/check-deployment.ts");
  try {
    const [deployed, released] = [await readDeployment(file), await readDeployment(join(PACKAGE_ROOT, CONFIG))];
    return checkDeployment({ deployed, released, needed: neededBindings(PACKAGE_ROOT) });
  } catch (thrown) {
    if (!(thrown instanceof UnreadableConfig)) throw thrown;
    return [
      {
        level: "error",
        what: `wrangler cannot read it: ${thrown.message}`,
        fix: "start with the wrangler.toml of this release",
      },
    ];
  }
}

async function checkBundle(file: string): Promise<{ findings: Finding[]; bytes: number | null }> {
  const { bundledBytes } = await import("../../local/deployment.ts");
  let bytes: number;
  try {
    bytes = await bundledBytes(file);
  } catch (thrown) {
    if (!(thrown instanceof Error)) throw thrown;
    return {
      findings: [{ level: "error", what: thrown.message, fix: "fix the error that wrangler reports" }],
      bytes: null,
    };
  }
  if (bytes <= WORKER_BYTES.paid) return { findings: [], bytes };
  const what = `the Worker is ${sizeText(bytes)} gzipped, but Cloudflare's limit is 10 MiB`;
  return { findings: [{ level: "error", what, fix: "remove environments or their imports" }], bytes };
}

async function checkPlatform(url: string): Promise<Finding[]> {
  const { checkDeployed } = await import("../../local/check-deployed.ts");
  return checkDeployed(url, process.env["ROLLCALL_API_KEY"]);
}

function reportText(file: string, findings: readonly Finding[], bytes: number | null): string {
  const lines = findings.flatMap(({ level, what, fix }) => [
    `${MARKS[level]} ${safeLine(what)}`,
    `    ${safeLine(fix)}`,
  ]);
  return [
    ...lines,
    ...(lines.length === 0 ? [] : [""]),
    ...(bytes === null ? [] : [`The Worker is ${sizeText(bytes)} gzipped; the limit of a paid plan is 10 MiB.`]),
    `Secrets are not in ${file}: list them with wrangler secret list --config ${file}.`,
    conclusion(findings),
  ].join("\n");
}

function conclusion(findings: readonly Finding[]): string {
  const errors = findings.filter(({ level }) => level === "error").length;
  if (errors > 0) return `not ready to deploy: ${errors} of ${findings.length} findings are errors`;
  return findings.length > 0 ? `ready to deploy, with ${findings.length} warnings` : "ready to deploy";
}

function sizeText(bytes: number): string {
  return `${(bytes / 1000).toFixed(0)} kB`;
}

export const DEPLOY_COMMANDS = [CHECK] as const;

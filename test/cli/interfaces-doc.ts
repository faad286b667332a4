/**
 * The input files and the expected output of the examples of `rollcall trigger` and `rollcall webhook` in
 * docs/commands.md.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

const TRIGGER = { object: "trigger", id: expect.stringMatching(/^tr_/) };

export const INTERFACES = {
  "trigger create": {
    text: /^trigger +(nightly|weekly)\n[\s\S]*url +http:\S+\/hooks\/tr_\w+\n[\s\S]*shown once: whsec_\S+\n/,
    json: { ...TRIGGER, name: "on-merge", concurrency: "allow", secret: null },
  },
  "trigger list": { text: /\non-merge +github +eval of calculator +allow +tr_/ },
  "trigger show": { text: /^trigger +on-merge\n/ },
  "trigger update": { text: /^trigger +on-merge\n/, json: { ...TRIGGER, concurrency: "coalesce", disabled: true } },
  "trigger test": { json: { object: "trigger_test", would: "begin", request: { metadata: { sha: "6113728" } } } },
  "trigger deliveries": { text: /^No deliveries yet\.\n/ },
  "trigger delete": { json: { deleted: true } },
  "webhook create": { json: { object: "webhook_endpoint", secret: expect.stringMatching(/^whsec_/) } },
  "webhook list": { text: /\nwhe_\w+ +http/ },
  "webhook show": { text: /^webhook +whe_\w+\n/ },
  "webhook update": { json: { object: "webhook_endpoint", events: null } },
  "webhook rotate-secret": { text: /^whsec_\S+\n$/ },
  "webhook test": { json: { object: "webhook_delivery", type: "webhook.test" } },
  "webhook deliveries": { text: /\nmsg_\w+ +webhook\.test / },
  "webhook replay": { json: { object: "webhook_replay" } },
  "webhook delete": { json: { deleted: true } },
};

/** Writes `run.json` and `trigger.json`; `base_url`: a model's URL. */
export function writeTriggers(folder: string, base_url: string): void {
  const run = { environment: "calculator", num_examples: 1, model: "scripted", endpoint: { base_url } };
  const verify = { scheme: "github", secret: "a-secret-that-github-signs-by" };
  const [map, when] = [{ "metadata.sha": "$.after" }, { "$.ref": "refs/heads/main" }];
  writeFileSync(join(folder, "run.json"), JSON.stringify(run));
  writeFileSync(join(folder, "trigger.json"), JSON.stringify({ name: "t", verify, run, map, when }));
}

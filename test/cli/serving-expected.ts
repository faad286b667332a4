/** The output of the examples of `rollcall endpoint` and `rollcall fleet`. */
import { expect } from "vitest";
import type { CommandName } from "../../src/cli/commands.ts";

/** As text, and as the object of --json. */
export interface Printed {
  readonly text?: RegExp;
  readonly json?: object;
}

const ENDPOINT = { object: "endpoint", id: expect.stringMatching(/^ep_/) };
const DELETED = { deleted: true };

export const SERVING_EXPECTED = {
  "endpoint add": {
    text: /^endpoint +fast\n[\s\S]*key +…1234\n[\s\S]*supports +chat/,
    json: ENDPOINT,
  },
  "endpoint list": {
    text: /\nfast +http/,
    json: { object: "list", data: expect.any(Array), has_more: expect.any(Boolean) },
  },
  "endpoint show": { text: /^endpoint +fast\n/ },
  "endpoint update": { json: { ...ENDPOINT, rpm: 600, prices: null } },
  "endpoint probe": { json: ENDPOINT },
  "secret set": { text: /^SEARCH_KEY is set\n/, json: { object: "secret", name: "SEARCH_KEY" } },
  "secret list": { text: /\nSEARCH_KEY +\d{4}-/ },
  "secret delete": { json: DELETED },
  "run delete": { json: { object: "deletion", kind: "run", finished_at: null } },
  "deletion list": { text: /\ndel_\w+ +run run_\w+ +(queued|running)/ },
  "deletion show": { json: { object: "deletion", id: expect.stringMatching(/^del_/) } },
  deploy: { json: { name: "prod", profile: "prod", findings: [], worker: "rollcall-prod" } },
  "deploy status": {
    text: /^deployment +prod\n[\s\S]*\nstate +ready\n[\s\S]*\nqueues +23\n/,
    json: { name: "prod", readiness: "ready", queues: { missing: [] } },
  },
  "deploy destroy": { json: { name: "prod", kept: [] } },
  "deploy check": { text: /\nready to deploy\n$/, json: { ok: true, findings: [], bundle_bytes: expect.any(Number) } },
  "endpoint delete": { text: /^Deleted ep_/, json: DELETED },
  "fleet create": { text: /^fleet +trained\n[\s\S]*update +reload\n[\s\S]*No replicas/ },
  "fleet list": { text: /\ntrained +reload +\d of 0/ },
  "fleet show": { text: /^fleet +trained\n/ },
  "fleet update": { json: { object: "fleet", update: expect.objectContaining({ pause: "abort", mode: "reload" }) } },
  "fleet replica add": {
    text: /^replica +gpu-0\n[\s\S]*key +…1234\n/,
    json: { object: "replica", id: expect.stringMatching(/^rp_/) },
  },
  "fleet replica list": { text: /\ngpu-0 +\w+/ },
  "fleet replica show": { text: /^replica +gpu-0\n/ },
  "fleet replica update": { json: { object: "replica", max_concurrent: 16 } },
  "fleet replica drain": { text: /^replica +gpu-0\n/, json: { object: "replica", name: "gpu-0" } },
  "fleet replica probe": { json: { object: "replica", name: "gpu-0" } },
  "fleet replica remove": { text: /^Removed rp_/ },
  "fleet delete": { json: DELETED },
} as const satisfies Partial<Record<CommandName, Printed>>;

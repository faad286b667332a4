/** The output of the examples of published environments. */
import { expect } from "vitest";
import type { CommandName } from "../../src/cli/commands.ts";
import type { Printed } from "./serving-expected.ts";

const ID = "alice/guess-word@0.1.0";
const VERSION = { object: "published_version", id: ID, digest: expect.stringMatching(/^sha256:/) };

export const HUB_EXPECTED = {
  "env publish": {
    text: /^Published alice\/guess-word@0\.1\.0 \(public\)\nsha256:[\s\S]*\nvalidation passed, \d+ rows played\n[\s\S]*\nNext:\n/,
    json: { ...VERSION, next: expect.any(Array) },
  },
  "env search": {
    text: /\nalice\/guess-word +0\.1\.0 +public/,
    json: { object: "list", data: [expect.objectContaining({ id: "alice/guess-word" })], has_more: false },
  },
  "env show": {
    text: /^environment +alice\/guess-word\nkind +javascript\nversion +0\.1\.0\n[\s\S]*\nvalidation passed[\s\S]*\n0\.1\.0 .* latest$/m,
    json: { version: VERSION, versions: { data: [VERSION] } },
  },
  "env pull": {
    text: /^alice\/guess-word@0\.1\.0: \d files in .*pulled\n$/,
    json: { object: "pulled_environment", id: ID, folder: expect.stringMatching(/pulled-again$/) },
  },
  "env diff": {
    text: /^The files are the same\.\n$/,
    json: { object: "environment_diff", from: ID, to: ID, files: [] },
  },
  "env results": {
    text: /^Results of this project on alice\/guess-word, from 1 run\n\nversion 0\.1\.0\nplace +model +reward[\s\S]*\n(1|–) +m +/,
    json: {
      ...{ object: "environment_results", id: "alice/guess-word", runs: 1 },
      rows: [expect.objectContaining({ version: "0.1.0", model: "m", evals: 1 })],
    },
  },
  "env install": { text: /^Installed alice\/guess-word@0\.1\.0 \(public\)\nsha256:/, json: VERSION },
  "env tag": {
    text: /^alice\/guess-word@stable is 0\.1\.0\n$/,
    json: { object: "environment_tag", id: "stable", deleted: true },
  },
  "env deprecate": {
    text: /^alice\/guess-word@0\.1\.0: deprecated: use alice\/guess-words\n$/,
    json: { ...VERSION, deprecated: null },
  },
  "env yank": {
    text: /^alice\/guess-word@0\.1\.0: yanked: its reward counts a wrong answer\n$/,
    json: { ...VERSION, yanked: null },
  },
  "env grant": {
    text: /^alice\/guess-word may use secret:SEARCH_KEY\n$/,
    json: { object: "environment_grant", needs: [] },
  },
} satisfies Partial<Record<CommandName, Printed>>;

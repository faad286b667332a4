/** A stored key is never sent to a server that it was not given for, whatever the patch. */
import { expect, test } from "vitest";
import { strayKey } from "../../src/fleets/replica-keys.ts";

const BASE = "https://gpu.example/v1";
const EVIL = "https://evil.example";
const ONE_KEY = { base_url: BASE, control_url: null, sealed_key: "s", sealed_control_key: null };
const TWO_KEYS = { ...ONE_KEY, control_url: "https://control.example", sealed_control_key: "s" };
const NO_KEY = { ...ONE_KEY, sealed_key: null };

test.each([
  ["another server", ONE_KEY, { base_url: `${EVIL}/v1` }, "api_key"],
  ["another control side", ONE_KEY, { control_url: EVIL }, "control_key"],
  ["another control side, in addition to a key of its own", TWO_KEYS, { control_url: EVIL }, "control_key"],
  ["the control side without its own key", TWO_KEYS, { control_key: null }, "control_key"],
  [
    "the control side, moved and without its own key",
    TWO_KEYS,
    { control_url: EVIL, control_key: null },
    "control_key",
  ],
  ["the server of the other key", TWO_KEYS, { control_url: null }, "control_key"],
])("%s would get a key that was not given for it", (_what, before, patch, stray) => {
  expect(strayKey(before, patch)).toBe(stray);
});

test.each([
  ["another path of the same server", ONE_KEY, { base_url: "https://gpu.example/other/v1" }],
  ["another server, with its key", ONE_KEY, { base_url: `${EVIL}/v1`, api_key: "k" }],
  ["another control side, with a key of its own", ONE_KEY, { control_url: EVIL, control_key: "k" }],
  ["another control side, with the key again", ONE_KEY, { control_url: EVIL, api_key: "k" }],
  ["another server, where no key is stored", NO_KEY, { base_url: `${EVIL}/v1`, control_url: EVIL }],
  ["the same server for both, with the one key", TWO_KEYS, { control_url: null, control_key: null }],
])("%s gets only its own keys", (_what, before, patch) => {
  expect(strayKey(before, patch)).toBeNull();
});

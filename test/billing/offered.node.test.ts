/** A model that the platform sells is recognised however its address is written. */
import { expect, test } from "vitest";
import { offered } from "../../src/billing/offered.ts";

const tokens = { input_per_mtok_micros: 3, cached_input_per_mtok_micros: 1, output_per_mtok_micros: 5 };
const list = { models: [{ base_url: "https://models.example/v1", model: "m", ...tokens }] };

test.each([
  ["https://MODELS.example/v1"],
  ["https://models.example:443/v1//"],
  ["https://models.example./v1"],
  ["https://models.example/./x/../v1"],
  ["https://models.example//v%31"],
  ["HTTPS://models.example/%2e/v1"],
])("%s is where the platform sells it", (base_url) => {
  expect(offered(list, { base_url, model: "m" })).toEqual(tokens);
});

test.each([
  ["http://models.example/v1", "m"],
  ["https://models.example:8443/v1", "m"],
  ["https://models.example/v2", "m"],
  ["https://models.example/%zz", "m"],
  ["https://models.example/v1", "M"],
])("%s with %s is another model", (base_url, model) => {
  expect(offered(list, { base_url, model })).toBeNull();
});

import { decode, encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  decodeRows,
  encodeRows,
  formatOf,
  rowsOf,
  SampleDecodeError,
  type SampleRow,
  sampleFault,
} from "../../../src/core/training/sample-row.ts";
import { sha256Hex } from "./digest.ts";

const GOLDEN_TEXT =
  '{"schema":"rl.sample/1","sample_id":"s_01","rollout_id":"r_01","group_id":"g_01","env":"math@1","token_ids":[10,11,12,20,21,30,22],"mask":[0,0,0,1,1,0,1],"logprobs":[0,0,0,-0.5,-0.25,0,-1],"advantage":0.5,"reward":1,"temperature":1,"policy_version_start":3,"policy_version_end":4,"weight_versions":[{"version":3,"start":3,"end":5},{"version":4,"start":6,"end":7}]}';
const GOLDEN_SHA256 = "ae3ed29cbf7c43a2d34494a7fa990195c8dab41717233178b7d57ca155c79aba";

const GOLDEN: SampleRow = {
  schema: "rl.sample/1",
  sample_id: "s_01",
  rollout_id: "r_01",
  group_id: "g_01",
  env: "math@1",
  token_ids: Int32Array.of(10, 11, 12, 20, 21, 30, 22),
  mask: Uint8Array.of(0, 0, 0, 1, 1, 0, 1),
  logprobs: Float32Array.of(0, 0, 0, -0.5, -0.25, 0, -1),
  advantage: 0.5,
  reward: 1,
  temperature: 1,
  policy_version_start: 3,
  policy_version_end: 4,
  weight_versions: [
    { version: 3, start: 3, end: 5 },
    { version: 4, start: 6, end: 7 },
  ],
};

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytesOf = (json: string) => new TextEncoder().encode(json);
const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

test("the golden row is encoded as the recorded JSON, byte by byte", async () => {
  const encoded = encodeRows([GOLDEN], "jsonl");
  expect(text(encoded)).toBe(`${GOLDEN_TEXT}\n`);
  expect(encoded.length - 1).toBe(364);
  expect(await sha256Hex(encoded.slice(0, -1))).toBe(GOLDEN_SHA256);
});

test("the golden row in msgpack has the recorded arrays", () => {
  expect(decode(encodeRows([GOLDEN], "msgpack"))).toMatchObject({
    token_ids: { dtype: "int32", shape: [7] },
    mask: { dtype: "uint8", shape: [7] },
    logprobs: { dtype: "float32", shape: [7] },
  });
  const arrays = decode(encodeRows([GOLDEN], "msgpack")) as Record<string, { data: Uint8Array }>;
  const data = (name: string) => hex(arrays[name]?.data ?? new Uint8Array());
  expect(data("token_ids")).toBe("0a0000000b0000000c00000014000000150000001e00000016000000");
  expect(data("mask")).toBe("00000001010001");
  expect(data("logprobs")).toBe("000000000000000000000000000000bf000080be00000000000080bf");
});

test.each(["msgpack", "jsonl"] as const)("rows in %s are decoded unchanged, also if joined", (encoding) => {
  const other: SampleRow = {
    ...GOLDEN,
    sample_id: "s_ä€🙂",
    advantages: Float32Array.of(0, 0, 0, 0.1, 0.2, 0, 0.3),
    ref_logprobs: Float32Array.of(0, 0, 0, -1e-7, -123.456, 0, -3),
  };
  const [a, b] = [encodeRows([GOLDEN], encoding), encodeRows([other, GOLDEN], encoding)];
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  expect(decodeRows(joined, encoding)).toEqual([GOLDEN, other, GOLDEN]);
  expect(decodeRows(new Uint8Array(), encoding)).toEqual([]);
  expect(formatOf(encoding)).toBe(`rl.sample/1+${encoding}+gzip`);
});

test("every float32 logprob survives JSON", () => {
  fc.assert(
    fc.property(fc.array(fc.float({ max: 0, noNaN: true, noDefaultInfinity: true })), (floats) => {
      const logprobs = Float32Array.from(floats, (value) => value + 0);
      const [row] = decodeRows(encodeRows([{ ...GOLDEN, logprobs }], "jsonl"), "jsonl");
      expect(row?.logprobs).toEqual(logprobs);
    }),
  );
});

test("unknown members are ignored, and whole numbers are numbers", () => {
  const more = GOLDEN_TEXT.replace("{", '{"messages":[{"role":"user"}],"model":"m",');
  expect(decodeRows(bytesOf(more), "jsonl")).toEqual([GOLDEN]);
});

test.each([
  ["no JSON", "jsonl", bytesOf("{")],
  ["not ASCII", "jsonl", bytesOf(GOLDEN_TEXT.replace("s_01", "ä"))],
  ["another schema", "jsonl", bytesOf(GOLDEN_TEXT.replace("sample/1", "sample/2"))],
  ["a temperature of 0", "jsonl", bytesOf(GOLDEN_TEXT.replace('"temperature":1', '"temperature":0'))],
  ["half a row", "msgpack", encodeRows([GOLDEN], "msgpack").slice(0, -9)],
] as const)("%s cannot be decoded, and the error names the place", (_name, encoding, bytes) => {
  expect(() => decodeRows(bytes, encoding)).toThrow(SampleDecodeError);
});

test("an array whose bytes do not fit its shape is refused with the row and the name", () => {
  const golden = decode(encodeRows([GOLDEN], "msgpack")) as object;
  const odd = { ...golden, token_ids: { dtype: "int32", shape: [7], data: new Uint8Array(7) } };
  expect(() => decodeRows(encode(odd), "msgpack")).toThrow(/row 0: .*not an array of 7 int32/);
  expect(() => decodeRows(encode(odd), "msgpack")).toThrow(/at token_ids/);
});

test("the golden row may train", () => {
  expect(sampleFault(GOLDEN)).toBeNull();
  const { weight_versions: _, advantage: __, reward: ___, ...least } = GOLDEN;
  expect(sampleFault(least)).toBeNull();
});

const floats = (...values: number[]) => Float32Array.from(values);
test.each<[string, Partial<SampleRow>]>([
  ["length_mismatch", { mask: Uint8Array.of(0, 0, 0, 1, 1, 0) }],
  ["length_mismatch", { advantages: floats(0, 0, 0) }],
  ["length_mismatch", { token_ids: Int32Array.of(1), mask: Uint8Array.of(0), logprobs: floats(0) }],
  ["reserved_env", { env: "all" }],
  ["reserved_env", { env: "" }],
  ["unscored", { reward: null }],
  ["empty_mask", { mask: new Uint8Array(7), logprobs: new Float32Array(7) }],
  ["first_token_trainable", { mask: Uint8Array.of(1, 0, 0, 1, 1, 0, 1) }],
  ["nonfinite", { logprobs: floats(0, 0, 0, Number.NaN, -0.25, 0, -1) }],
  ["nonfinite", { ref_logprobs: floats(0, 0, 0, Number.NEGATIVE_INFINITY, -0.25, 0, -1) }],
  ["positive_logprob", { logprobs: floats(0, 0, 0, 0.1, -0.25, 0, -1) }],
  ["missing_logprob", { logprobs: floats(0, 0, 0, -9999, -0.25, 0, -1) }],
  ["mask_logprob_disagree", { logprobs: floats(0, 0, -0.1, -0.5, -0.25, 0, -1) }],
  ["mask_logprob_disagree", { advantages: floats(0, 0.5, 0, 0.5, 0.5, 0, 0.5) }],
  ["mask_logprob_disagree", { mask: Uint8Array.of(0, 0, 0, 1, 2, 0, 1) }],
  ["span_mismatch", { weight_versions: [{ version: 3, start: 3, end: 7 }] }],
  ["span_mismatch", { weight_versions: [{ version: 3, start: 3, end: 5 }] }],
  [
    "span_mismatch",
    {
      weight_versions: [
        { version: 4, start: 6, end: 7 },
        { version: 3, start: 3, end: 5 },
      ],
    },
  ],
])("%s is reported with its code", (code, change) => {
  expect(sampleFault({ ...GOLDEN, ...change })).toBe(code);
});

test("the rows of a rollout share its id, and have no rewards or advantages", () => {
  const sample = {
    token_ids: GOLDEN.token_ids,
    mask: GOLDEN.mask,
    logprobs: GOLDEN.logprobs,
    weight_versions: GOLDEN.weight_versions ?? [],
    policy_version_start: 3,
    policy_version_end: 4,
    trainable_tokens: 3,
  };
  const origin = { rollout_id: "ro_1", group_id: "grp_1", env: "math@1", temperature: 0.7 };
  const rows = rowsOf([sample, sample], origin);
  expect(rows.map(({ sample_id }) => sample_id)).toEqual(["ro_1.0", "ro_1.1"]);
  expect(rows[0]).toMatchObject({ ...origin, policy_version_end: 4, schema: "rl.sample/1" });
  expect(rows[0]).not.toHaveProperty("reward");
  expect(rows[0]).not.toHaveProperty("trainable_tokens");
  expect(rows.map(sampleFault)).toEqual([null, null]);
});

/** The per-token streams of a batch, decoded by msgspec into prime-rl's own struct. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { encodeMicroBatch, listHeader, packed } from "../../src/core/training/formats/micro-batch.ts";
import { creditedRow } from "../core/training/formats/golden-row.ts";
import { succeedIn } from "../local/in-a-folder.ts";
import { pythonVenv } from "../python/python-venv.ts";

test("weights by prompt and reference logprobs reach prime-rl's fields of these names", async ({ skip }) => {
  const requirements = join(import.meta.dirname, "requirements.txt");
  const { python } = (await pythonVenv("bridges", requirements, "ROLLCALL_BRIDGES_VENV")) ?? skip();
  const rows = [
    { ...creditedRow(3, { ref_logprobs: Float32Array.of(0, -0.5, -1.25) }), weight: 1.5 },
    { ...creditedRow(2, { ref_logprobs: Float32Array.of(0, -2) }), weight: 0.75 },
  ];
  const batch = packed(rows, { seq_len: 8, padTo: 1 });
  const message = Buffer.concat([listHeader(1), ...encodeMicroBatch(batch)]);
  const program = `import json, sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1])
from prime_rl_trainer import DECODER
[batch] = DECODER.decode(bytes.fromhex(sys.argv[2]))
print(json.dumps([batch.rl_weights, batch.ref_logprobs, batch.ref_kl_weights, batch.advantages]))`;
  const command = [python, "-c", program, import.meta.dirname, message.toString("hex")] as const;
  expect(JSON.parse(await succeedIn(import.meta.dirname, [...command]))).toEqual([
    [0, 1.5, 1.5, 0, 0.75],
    [0, -0.5, -1.25, 0, -2],
    null,
    [0, 0.5, 0.5, 0, 0.5],
  ]);
});

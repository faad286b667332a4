/** Weight versions: what a trainer reports, and who serves what. The weights themselves never pass through here. */
import { WeightLedger, WeightVersionReport } from "../contract/trainer-wire.ts";
import { unwrap } from "./errors.ts";
import { idempotencyKeyOf, parseAs, readJson } from "./input.ts";
import { LEDGER } from "./openapi/trainer-examples.ts";
import { type ApiContext, type Operation, pathParam } from "./operation.ts";

const FOLDER = "/v1/runs/{id}/weight-versions";

export const weightOperations: readonly Operation[] = [
  {
    id: "reportWeightVersion",
    method: "post",
    path: FOLDER,
    trainer: true,
    summary: "Tell what became of a weight version",
    description:
      "`published`: it is there, and whatever waited for it goes on. `applied`: a replica serves it, and new groups are sampled by the least version applied. Both come after the acknowledgement of their batch, or of a pushed one before the answer to its offer. `pending` and `failed` are only kept. Versions grow within an epoch; saying the same again changes nothing.",
    headers: { "Idempotency-Key": "accepted and not needed: asking twice is asking once" },
    body: {
      schema: WeightVersionReport,
      example: { version: 1, state: "applied", epoch: 1, replica: "gpu-0", label: "step_1" },
    },
    reply: {
      status: 200,
      description: "The ledger after it",
      contentType: "application/json",
      schema: WeightLedger,
      example: LEDGER,
    },
    errors: ["not_found", "epoch_fenced", "version_ahead", "conflict"],
    handle: reportOne,
  },
  {
    id: "listWeightVersions",
    method: "get",
    path: FOLDER,
    trainer: true,
    summary: "Read which weight versions there are, and which replica serves which",
    reply: {
      status: 200,
      description: "The ledger",
      contentType: "application/json",
      schema: WeightLedger,
      example: LEDGER,
    },
    errors: ["not_found"],
    handle: async (context) => {
      const { services } = context.var.dependencies;
      const id = pathParam(context, "id");
      return context.json(unwrap(await services.readWeightLedger(context.env, context.var.scope, id)));
    },
  },
];

async function reportOne(context: ApiContext): Promise<Response> {
  idempotencyKeyOf(context.req.raw);
  const asked = parseAs(WeightVersionReport, await readJson(context.req.raw));
  const { services } = context.var.dependencies;
  const id = pathParam(context, "id");
  const reported = services.askTrainer(context.env, context.var.scope, id, (trainer) => trainer.report(asked));
  return context.json(unwrap(await reported));
}

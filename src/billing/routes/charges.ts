/** The route that recomputes and compares the charges of a run's rollouts. */
import * as z from "zod";
import { ChargeAudit } from "../../contract/audit.ts";
import { wholeNumber } from "../../contract/primitives.ts";
import { answer, readQuery } from "../../kernel/http/answer.ts";
import { type Operation, serviceOf } from "../../kernel/http/operation.ts";
import type { BillingService } from "../service.ts";

const ChargesQuery = z.strictObject({
  after: wholeNumber(0).default(0).describe("`next` of the previous slice"),
});

/** CPU time for a slice of 250 rollouts, in milliseconds. */
const CHARGES_COST_MS = 20;

const service = serviceOf<BillingService>("billing");

export const chargeOperations: readonly Operation[] = [
  {
    id: "auditCharges",
    route: "GET /v1/runs/{id}/charges",
    costMs: CHARGES_COST_MS,
    permission: "runs:read",
    summary: "Recompute the charges of a run's ended rollouts and compare them",
    description:
      "Returns one slice at a time, in the order in which the rollouts ended. Each computed charge is compared with the run's row and with the entry in the organisation's ledger.",
    query: ChargesQuery,
    reply: {
      description: "The result for this slice; repeat with `after` until `next` is null",
      schema: ChargeAudit,
    },
    errors: ["in_progress", "run_unreadable"],
    handle: (context) => answer(context, service(context).auditCharges, readQuery(context, ChargesQuery)),
  },
];

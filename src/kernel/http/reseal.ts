/** For operators: seals values again under the current secret. */
import { Resealed, ResealQuery } from "../../contract/reseal.ts";
import { readQuery } from "./answer.ts";
import type { Operation } from "./operation.ts";

export const resealOperations: readonly Operation[] = [
  {
    id: "resealValues",
    route: "POST /v1/reseal",
    permission: "operator",
    reach: "organization",
    summary: "Re-encrypt sealed values under the current ROLLCALL_SECRET",
    description:
      "One call handles up to 100 values of all organisations. Repeat it with `after` until `next` is null. A value that " +
      "cannot be decrypted is listed and skipped. Once `remaining` is 0, `ROLLCALL_SECRETS_BEFORE` is no longer needed. " +
      "No value leaves the deployment.",
    query: ResealQuery,
    reply: { description: "What this call did, and what is left to do", schema: Resealed },
    handle: async (context) => {
      const { after } = readQuery(context, ResealQuery);
      return Response.json(await context.var.services.reseal(context.env, after ?? null));
    },
  },
];

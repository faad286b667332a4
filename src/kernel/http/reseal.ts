/** For operators: what is sealed under a secret before the current one is sealed anew. */
import { Resealed, ResealQuery } from "../../contract/reseal.ts";
import { readQuery } from "./answer.ts";
import type { Operation } from "./operation.ts";

export const resealOperations: readonly Operation[] = [
  {
    id: "resealValues",
    route: "POST /v1/reseal",
    permission: "operator",
    reach: "organization",
    summary: "Seal what is kept sealed under the current ROLLCALL_SECRET",
    description:
      "Up to 100 values a call, of all organisations: ask again with `after` until `next` is null. One that does not " +
      "open is named and passed over. Once `remaining` is 0, nothing sealed needs `ROLLCALL_SECRETS_BEFORE` any more. " +
      "No value leaves the deployment.",
    query: ResealQuery,
    reply: { description: "What this call did, and what is left to do", schema: Resealed },
    handle: async (context) => {
      const { after } = readQuery(context, ResealQuery);
      return Response.json(await context.var.services.reseal(context.env, after ?? null));
    },
  },
];

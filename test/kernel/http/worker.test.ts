/** The Worker as it is deployed, over HTTP: routes and real services together, with bad input. */
import { env, exports } from "cloudflare:workers";
import { expect, test } from "vitest";
import { EnvironmentView } from "../../../src/contract/run.ts";
import { RUN, RUN_REQUEST } from "./examples.ts";
import { openTestApi } from "./test-api.ts";
import { checked } from "./validate-responses.ts";

async function openWorker() {
  const { token, scope } = await openTestApi();
  const ask = checked((path, init = {}) =>
    exports.default.fetch(`http://platform.test${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    }),
  );
  const post = (body: object): Promise<Response> => ask("/v1/runs", { method: "POST", body: JSON.stringify(body) });
  return { ask, post, scope };
}

test("the bundled environments are listed, and each can be read by its id and its version", async () => {
  const { ask } = await openWorker();
  const page = await (await ask("/v1/environments")).json<{ data: EnvironmentView[] }>();
  // Other tests publish environments.
  const data = page.data.filter(({ published }) => published === null);
  expect(data.map(({ id }) => id)).toContain("gsm8k");
  for (const environment of data) {
    EnvironmentView.parse(environment);
    for (const name of [environment.id, `${environment.id}@${environment.version}`]) {
      expect(await (await ask(`/v1/environments/${name}`)).json()).toEqual(environment);
    }
  }
});

test.each([
  `/v1/runs/${RUN.id}`,
  `/v1/runs/${RUN.id}/events`,
  `/v1/runs/${RUN.id}/results`,
  "/v1/runs/%00",
  "/v1/rollouts/ro_guess",
  "/v1/environments/none",
])("%s, an id that was never minted, is 404", async (path) => {
  const { ask } = await openWorker();
  const reply = await ask(path);
  expect(reply.status).toBe(404);
  expect(await reply.json()).toMatchObject({ error: { code: "not_found" } });
});

test.each([
  ["an unknown environment", { environment: "none" }, "environment"],
  ["an unknown version", { environment: "gsm8k@99" }, "environment"],
  ["bad arguments", { environment_args: { system_prompt: 7 } }, "environment_args.system_prompt"],
  ["an unknown argument", { environment_args: { sytem: "x" } }, "environment_args.sytem"],
  ["a row without its fields", { dataset: [{ question: "?", answer: "7" }, {}] }, "rows[1].question"],
  ["a missing dataset", { dataset: undefined }, "dataset"],
])("%s is a 4xx that names the field and leaves no run behind", async (_what, changes, param) => {
  const { ask, post, scope } = await openWorker();
  const reply = await post({ ...RUN_REQUEST, environment: "gsm8k", ...changes });
  expect([400, 404]).toContain(reply.status);
  expect(await reply.json()).toMatchObject({ error: { param } });
  expect(await (await ask("/v1/runs")).json()).toMatchObject({ data: [] });
  const left = await env.DB.prepare("select count(*) as n from endpoints where org_id = ?")
    .bind(scope.orgId)
    .first("n");
  expect(left).toBe(0);
});

/**
 * Checks the OpenAPI document's bounds of each parameter against the app: a value just inside a bound is not refused
 * for that parameter, and one just outside is.
 */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import type { JsonSchema } from "../../../src/kernel/http/openapi/json-schema.ts";
import { type DocumentedOperation, openApiOf, type Parameter } from "../../../src/kernel/http/openapi/openapi.ts";
import type { Services } from "../../../src/kernel/service/services.ts";
import { SLICE_SERVICES } from "../../../src/slice-services.ts";
import { OPERATIONS } from "../../../src/slices.ts";
import { admit } from "../../accounts/admit.ts";
import { openTestApi, SERVICE_NAMES, type TestApi } from "./test-api.ts";

/** Texts of which a pattern allows some. */
const CANDIDATES = ["", "%", "é", "\u0000", "a b", "x".repeat(255), "x".repeat(256)];

interface Route extends DocumentedOperation {
  readonly method: string;
  readonly path: string;
}

const routes: Route[] = Object.entries(openApiOf(OPERATIONS).paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })),
);
const bounded = routes.flatMap((route) =>
  route.parameters.flatMap((parameter) => boundsOf(parameter).map((bound) => ({ route, parameter, ...bound }))),
);

let api: TestApi;
/** The token of a caller that may do everything, operators' operations too. */
let token: string;
beforeAll(async () => {
  const billing = Object.fromEntries(Object.keys(SLICE_SERVICES.billing).map((name) => [name, nothing]));
  api = await openTestApi(everyOne(nothing), { billing });
  token = await admit(api.scope, { project_id: null, scopes: ["admin", "operator"] });
});

const NOTHING = { code: "not_found", message: "nothing is there", param: null };
const nothing = async () => ({ ok: false, error: NOTHING });

/** Services that all give the same answer: a request that reaches one was not refused. */
function everyOne(answer: () => Promise<unknown>): Partial<Services> {
  const named: Partial<Record<keyof Services, () => Promise<unknown>>> = {};
  for (const name of SERVICE_NAMES) named[name] = answer;
  return named as Partial<Services>;
}

interface Bound {
  readonly bound: string;
  /** Values that it allows; for a pattern, only the example. */
  readonly inside: readonly string[];
  readonly outside: readonly string[];
}

function boundsOf({ schema, example }: Parameter): Bound[] {
  const { minimum, maximum, minLength, maxLength, pattern } = schema;
  const bounds: (Bound | null)[] = [
    minimum === undefined ? null : sides("minimum", BigInt(minimum), -1n),
    maximum === undefined ? null : sides("maximum", BigInt(maximum), 1n),
    minLength === undefined ? null : lengths("minLength", minLength, -1),
    maxLength === undefined ? null : lengths("maxLength", maxLength, 1),
    pattern === undefined ? null : patternOf(pattern, String(example)),
    kindOf(schema),
  ];
  return bounds.filter((bound) => bound !== null);
}

function sides(bound: string, at: bigint, out: bigint): Bound {
  return { bound, inside: [String(at)], outside: [String(at + out)] };
}

function lengths(bound: string, at: number, out: number): Bound {
  return { bound, inside: ["a".repeat(at)], outside: ["a".repeat(at + out)] };
}

function patternOf(pattern: string, example: string): Bound {
  const form = new RegExp(pattern, "u");
  expect(example).toMatch(form);
  const outside = CANDIDATES.filter((text) => !form.test(text));
  expect(outside).not.toEqual([]);
  return {
    bound: pattern,
    inside: [example, ...CANDIDATES.filter((text) => form.test(text))],
    outside,
  };
}

function kindOf(schema: JsonSchema): Bound | null {
  if (schema.enum !== undefined) {
    return { bound: "enum", inside: schema.enum.map(String), outside: ["nonesuch"] };
  }
  const notWhole = ["1e2", "1.5", "-1"];
  const no = ["0x10", " 10", "10 ", "+5", "٣", "", "1,2", "Infinity", "010"];
  if (schema.type === "integer") return { bound: "integer", inside: [], outside: [...no, ...notWhole] };
  if (schema.type === "number") return { bound: "number", inside: ["-0.5", "1e-2"], outside: no };
  return null;
}

/** The result of a request with this value there; null if no request can contain it. */
async function asked(route: Route, parameter: Parameter, value: string) {
  const { in: place } = parameter;
  // A header cannot contain such characters, or white space around its value; a path has no empty part.
  if (place === "header" && /[^ -~]|^ | $/.test(value)) return null;
  if (place === "path" && value === "") return null;
  const parameters = [...requiredOf(route), { ...parameter, example: value }];
  const values = (where: Parameter["in"]): [string, string][] =>
    parameters.flatMap((one) => (one.in === where ? [[one.name, String(one.example)]] : []));
  const path = values("path").reduceRight(
    (rest, [id, text]) => rest.replace(`{${id}}`, encodeURIComponent(text)),
    route.path,
  );
  const query = new URLSearchParams(Object.fromEntries(values("query")));
  const [[type, media] = []] = Object.entries(route.requestBody?.content ?? {});
  const reply = await api.app.request(
    `http://platform.test${path}?${query}`,
    {
      method: route.method.toUpperCase(),
      headers: {
        authorization: `Bearer ${token}`,
        "rollcall-project": api.scope.projectId,
        ...(type !== undefined && { "content-type": type }),
        ...Object.fromEntries(values("header")),
      },
      body: media === undefined ? null : JSON.stringify(media.example),
    },
    env,
  );
  return { status: reply.status, ...(await refusalIn(reply)) };
}

/** The parameters that a path and a query require. */
function requiredOf({ parameters }: Route): readonly Parameter[] {
  return parameters.filter(({ name, in: place }) => place === "path" || name === "baseline");
}

async function refusalIn(reply: Response): Promise<{ param: string | null; message: string }> {
  const text = new TextDecoder().decode(await reply.arrayBuffer());
  if (reply.status < 400) return { param: null, message: "" };
  const { error } = JSON.parse(text);
  // What npm reads is a text that begins with the parameter.
  return typeof error === "string" ? { param: /^([\w-]+): /.exec(error)?.[1] ?? null, message: error } : error;
}

test("the document has bounds for the parameters that are known to be bounded", () => {
  const named = (name: string) => bounded.filter(({ parameter }) => parameter.name === name);
  for (const name of ["limit", "step", "Idempotency-Key", "Last-Event-ID", "after"]) {
    const declared = routes.filter(({ parameters }) => parameters.some((one) => one.name === name));
    expect(new Set(named(name).map(({ route }) => route.operationId)), name).toEqual(
      new Set(declared.map(({ operationId }) => operationId)),
    );
  }
  expect(named("step").find(({ bound }) => bound === "minimum")?.inside).toEqual(["1"]);
  expect(named("limit").find(({ bound }) => bound === "maximum")).toBeDefined();
});

test.each(bounded.map((one) => [one.route.operationId, one.parameter.name, one.bound, one] as const))(
  "the bound of %s on %s is enforced: %s",
  async (_operation, name, _bound, { route, parameter, inside, outside }) => {
    for (const value of inside) {
      const reply = await asked(route, parameter, value);
      // It has the right form, but no such object exists.
      const unknown = name === "after" && / is not the id of /.test(reply?.message ?? "");
      if (!unknown) expect(reply?.param, `${JSON.stringify(value)}: ${reply?.message}`).not.toBe(name);
    }
    for (const value of outside) {
      const reply = await asked(route, parameter, value);
      if (reply === null) continue;
      expect({ value, ...reply }).toMatchObject({ value, status: 400, param: name });
    }
  },
);

/**
 * The OpenAPI document against the specification's own schema; in Node, because the validator compiles code, which
 * workerd refuses.
 */
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { openApiOf } from "../../src/kernel/http/openapi/openapi.ts";
import { OPERATIONS } from "../../src/slices.ts";

const served = () => JSON.parse(JSON.stringify(openApiOf(OPERATIONS)));

test("the document is valid OpenAPI 3.1", async () => {
  const validator = new Validator();
  expect(await validator.validate(served())).toEqual({ valid: true });
  expect(validator.version).toBe("3.1");
});

test("the validator refuses a document that is not OpenAPI", async () => {
  const { paths: _, ...rest } = served();
  expect(await new Validator().validate({ ...rest, paths: { "/x": { get: 1 } } })).toMatchObject({
    valid: false,
  });
});

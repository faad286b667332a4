/** The examples of the OpenAPI document, for tests that need a value of its schemas. */

import { RunAudit } from "../../../src/contract/audit.ts";
import { RunComparison } from "../../../src/contract/comparison.ts";
import { ResultRow, RolloutView, RunRequest, RunView } from "../../../src/contract/run.ts";
import { RunEvent } from "../../../src/contract/run-events.ts";
import { BatchManifest } from "../../../src/contract/trainer-wire.ts";
import { DatasetView } from "../../../src/contract/uploaded-dataset.ts";
import { SchemaCollection } from "../../../src/kernel/http/openapi/json-schema.ts";

const schemas = new SchemaCollection();

export const RUN_REQUEST = schemas.example(RunRequest);
export const RUN = RunView.parse(schemas.example(RunView));
export const TRAINING_RUN = RunView.parse(schemas.example(RunView, { kind: "training", training: {} }));
export const ROLLOUT = schemas.example(RolloutView);
export const RESULT_ROW = schemas.example(ResultRow);
export const RUN_EVENT = schemas.example(RunEvent);
export const AUDIT = schemas.example(RunAudit);
export const COMPARISON = schemas.example(RunComparison);
export const DATASET = schemas.example(DatasetView);
export const MANIFEST = schemas.example(BatchManifest);

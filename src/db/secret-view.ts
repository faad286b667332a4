/** A secret in the shape of the wire: everything but its value. */
import type { SecretView } from "../contract/endpoint.ts";
import type { SecretRow } from "./schema.ts";

export function secretViewOf(secret: Pick<SecretRow, "id" | "name" | "created_at" | "updated_at">): SecretView {
  return {
    object: "secret",
    id: secret.id,
    name: secret.name,
    created_at: Math.floor(secret.created_at / 1000),
    updated_at: Math.floor(secret.updated_at / 1000),
  };
}

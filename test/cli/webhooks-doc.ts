/** What the commands of webhooks say that docs/commands.md shows. */
import { expect } from "vitest";

export const WEBHOOKS = {
  "webhook create": { json: { object: "webhook_endpoint", secret: expect.stringMatching(/^whsec_/) } },
  "webhook list": { text: /\nwhe_\w+ +http/ },
  "webhook show": { text: /^webhook +whe_\w+\n/ },
  "webhook update": { json: { object: "webhook_endpoint", events: null } },
  "webhook rotate-secret": { text: /^whsec_\S+\n$/ },
  "webhook test": { json: { object: "webhook_delivery", type: "webhook.test" } },
  "webhook deliveries": { text: /\nmsg_\w+ +webhook\.test / },
  "webhook replay": { json: { object: "webhook_replay" } },
  "webhook delete": { json: { deleted: true } },
};

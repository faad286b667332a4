/**
 * An environment that stores its work in sql and reports every tool run to a service, by its idempotency key. The
 * service is the model outside workerd, under the name of a script: it hangs where the script says, and counts the
 * runs.
 */
import { env } from "cloudflare:workers";
import * as z from "zod";
import {
  type Call,
  type Capabilities,
  dataset,
  defineEnvironment,
  inject,
  type Sql,
  StatefulToolEnv,
  tool,
} from "../../src/core/entry.ts";
import { registerOnce } from "./registered.ts";

type Fetch = Capabilities["fetch"];
/** The kinds of calls of `service`, one entry each, so that each has its own faults. */
type Errand = "setup" | "note" | "pay" | "stop";

const Task = z.object({ question: z.string() });
const hidden = { db: inject<Sql>(), tell: inject<(key: string) => Promise<string>>() };

const note = tool({
  name: "note",
  description: "Writes a note.",
  parameters: z.object({ text: z.string() }),
  hidden,
  run: async ({ text, db, tell }, call) => {
    await db.exec("insert into notes values (?)", text);
    await tell(call.idempotencyKey);
    return await db.exec("insert into notes values (?) returning rowid", `${text}, told`);
  },
});

const pay = tool({
  name: "pay",
  description: "Pays.",
  parameters: z.object({}),
  hidden,
  idempotent: false,
  run: async ({ tell }, call: Call) => await tell(call.idempotencyKey),
});

/** `service`: the script for each errand; an errand without one makes no call. */
const desk = defineEnvironment({
  args: z.strictObject({ service: z.partialRecord(z.string(), z.string()).default({}) }),
  needs: ["sql", "fetch"],
  build: ({ service }) => {
    const run = async (fetch: Fetch, errand: Errand, key: string) => {
      const script = service[errand];
      return script === undefined ? "" : await told(fetch, script, key);
    };
    return new StatefulToolEnv({
      dataset: dataset(Task, [{ question: "Keep the desk." }]),
      setupState: async (_state, { sql, fetch }) => {
        await sql.exec("create table notes(text); insert into notes values ('first')");
        await run(fetch, "setup", "setup");
        return { notes: "" };
      },
      openLive: (_state, { sql, fetch }) => ({ sql, fetch }),
      tools: [note, pay],
      updateToolArgs: (name, args, _messages, { live }) => ({
        ...args,
        db: live.sql,
        tell: (key: string) => run(live.fetch, name === "pay" ? "pay" : "note", key),
      }),
      stops: {
        asked: {
          priority: 5,
          when: async ({ live, turn }) => {
            if (turn === 1) await run(live.fetch, "stop", "asked");
            return false;
          },
        },
      },
      postRollout: async (state) => {
        const rows = await state.live.sql.exec("select text from notes order by rowid");
        state.notes = rows.map(({ text }) => text).join("; ");
      },
      rubric: { rewards: { length: ({ state }) => state.notes.length } },
    });
  },
});

async function told(fetch: Fetch, script: string, key: string): Promise<string> {
  const reply = await fetch(`${env.MODEL_URL}/chat/completions`, {
    method: "POST",
    headers: { "idempotency-key": key },
    body: JSON.stringify({ model: script, messages: [] }),
  });
  return (await reply.text()) === "" ? "" : "told";
}

export function registerDesk(): void {
  const { args, needs, load } = desk;
  registerOnce({ id: "desk", version: "1.0.0", digest: "sha256:desk", args, needs, load });
}

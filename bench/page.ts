/**
 * The web page in a browser: `npm run bench:page [-- --times N]`. A real platform holds a rollout of 300,000 messages,
 * calls and results, and an ended run of 100,000 rollouts. Prints the milliseconds until each page's main content is in
 * the document, and the megabytes that its tab then uses, after a garbage collection.
 *
 * Cold: a new browser with nothing but its session; warm: its tab opens the page again. `footprint` is the value of
 * Chromium's own task manager for a tab: the memory that its process shares with no other. It is null without /proc.
 */
import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { bootPlatform, type Platform } from "../src/local/platform.ts";
import { RollcallClient } from "../src/sdk/client.ts";
import { startScriptedModel } from "../test/fakes/scripted-model.ts";
import { inPage, launchBrowser, signIn } from "../test/web/browser.ts";
import { eventsIn } from "../test/web/long-rollout.ts";
import { PLANTING, plantLongRollout, plantRollouts } from "../test/web/planting.ts";
import { describeMachine } from "./machine.ts";

const TURNS = 1168;
const GROUPS = 25_000;
const PER_GROUP = 4;

interface Look {
  readonly name: string;
  readonly path: string;
  /** The selector that matches when the page is ready. */
  readonly ready: string;
  /** A key to press then, and the selector that is timed after it. */
  readonly press?: { readonly key: string; readonly ready: string };
}

interface Taken {
  readonly ms: number;
  readonly heap_mb: number;
  readonly footprint_mb: number | null;
}

const { values } = parseArgs({ options: { times: { type: "string", default: "5" } } });
const times = Math.max(1, Number(values.times));
const log = (line: string) => process.stderr.write(`${line}\n`);

const platform = await bootPlatform({ directory: null, log, worker: PLANTING });
try {
  const looks = await plantAll(platform);
  const browser = await launchBrowser();
  try {
    const pages: Record<string, unknown>[] = [];
    const before = loadavg()[0];
    for (const look of looks) {
      log(look.name);
      pages.push(await takeAll(browser, await sessionOf(browser), look));
    }
    const held = { events: eventsIn(TURNS), rollouts: GROUPS * PER_GROUP };
    const load = { before, after: loadavg()[0] };
    process.stdout.write(`${JSON.stringify({ machine: describeMachine(), load, ...held, times, pages }, null, 2)}\n`);
  } finally {
    await browser.close();
  }
} finally {
  await platform.stop();
}

async function plantAll({ url, key }: Platform): Promise<Look[]> {
  const client = new RollcallClient({ baseUrl: url, apiKey: key });
  const model = await startScriptedModel({ reply: () => "It is 48." });
  const play = async (num_examples: number, rollouts_per_example: number) => {
    const endpoint = { base_url: model.url };
    const asked = { environment: "calculator", model: "m", endpoint, num_examples, rollouts_per_example };
    return (await client.runs.create({ ...asked, max_concurrent: 1 })).id;
  };
  try {
    const short = await play(1, 1);
    for await (const { event } of client.runs.events(short)) if (event === "run.completed") break;
    const rollout = await plantLongRollout(url, short, TURNS);
    const run = await play(GROUPS, PER_GROUP);
    await client.runs.cancel(run);
    for await (const _ of client.runs.events(run));
    await plantRollouts(url, run, GROUPS * PER_GROUP);
    return looksAt(run, rollout);
  } finally {
    await model.stop();
  }
}

function looksAt(run: string, rollout: string): Look[] {
  const list = (filter: string, sort: string) => {
    return `/runs/${run}/rollouts?${new URLSearchParams({ filter, sort })}`;
  };
  const row = '[data-row="0"] a';
  const turn = (index: number) => `article[data-index="${index}"] .turn-head`;
  const last = { key: "]", ready: turn(TURNS - 1) };
  const none = "turns>3 -truncated:true reward>0.99";
  return [
    { name: "all runs", path: "/", ready: row },
    { name: "the run", path: `/runs/${run}`, ready: ".stat" },
    { name: "its rollouts", path: `/runs/${run}/rollouts`, ready: row },
    { name: "those of outcome:failed by -duration", path: list("outcome:failed", "-duration"), ready: row },
    { name: "those of reward<0.5 by -reward", path: list("reward<0.5", "-reward"), ready: row },
    { name: `those of ${none} by -tokens, which are none`, path: list(none, "-tokens"), ready: ".empty" },
    { name: "the long rollout, its first turn", path: `/rollouts/${rollout}`, ready: turn(0) },
    { name: "from there to its last turn", path: `/rollouts/${rollout}`, ready: turn(0), press: last },
    { name: "the long rollout at its last turn", path: `/rollouts/${rollout}?turn=${TURNS}`, ready: last.ready },
  ];
}

type Session = Awaited<ReturnType<BrowserContext["storageState"]>>;

async function sessionOf(browser: Browser): Promise<Session> {
  const tab = await signIn(browser, platform, "/keys");
  const session = await tab.page.context().storageState();
  await tab.close();
  return session;
}

async function takeAll(browser: Browser, session: Session, look: Look): Promise<Record<string, unknown>> {
  const [cold, warm]: [Taken[], Taken[]] = [[], []];
  for (let time = 0; time < times; time += 1) {
    const context = await browser.newContext({
      ...{ storageState: session, viewport: { width: 1280, height: 900 }, locale: "en-US" },
    });
    try {
      const page = await context.newPage();
      cold.push(await take(page, look));
      await page.goto("about:blank");
      warm.push(await take(page, look));
    } finally {
      await context.close();
    }
  }
  return { name: look.name, cold: summaryOf(cold), warm: summaryOf(warm) };
}

async function take(page: Page, { path, ready, press }: Look): Promise<Taken> {
  await page.goto(platform.url + path, { waitUntil: "commit" });
  let ms = await clockWhen(page, ready);
  if (press !== undefined) {
    const began = Number(await inPage(page, "performance.now()"));
    await page.keyboard.press(press.key);
    ms = (await clockWhen(page, press.ready)) - began;
  }
  return { ms, ...(await memoryOf(page)) };
}

/** The page's clock, which starts with its navigation, in the first frame that has such an element. */
async function clockWhen(page: Page, selector: string): Promise<number> {
  const look = `const look = () =>
    document.querySelector(${JSON.stringify(selector)}) ? resolve(performance.now()) : requestAnimationFrame(look);`;
  return Number(await inPage(page, `new Promise((resolve) => { ${look} look(); })`));
}

async function memoryOf(page: Page): Promise<Omit<Taken, "ms">> {
  const tools = await page.context().newCDPSession(page);
  await tools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await tools.send("Runtime.getHeapUsage");
  await tools.detach();
  return { heap_mb: usedSize / 1e6, footprint_mb: await footprintOf(page) };
}

/** The largest of the browser's tabs, which is the open one: some others wait for their first page. */
async function footprintOf(page: Page): Promise<number | null> {
  if (process.platform !== "linux") return null;
  const tools = await page.context().browser()?.newBrowserCDPSession();
  const { processInfo = [] } = (await tools?.send("SystemInfo.getProcessInfo")) ?? {};
  await tools?.detach();
  const kilobytes = processInfo
    .filter(({ type }) => type === "renderer")
    .map(({ id }) => Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1]));
  return (Math.max(...kilobytes) * 1024) / 1e6;
}

function summaryOf(taken: readonly Taken[]): Record<string, unknown> {
  const of = (read: (one: Taken) => number | null) => {
    const numbers = taken.flatMap((one) => read(one) ?? []).sort((a, b) => a - b);
    const at = (index: number) => Math.round(numbers[index] ?? Number.NaN);
    return numbers.length === 0 ? null : { median: at(Math.floor(numbers.length / 2)), worst: at(numbers.length - 1) };
  };
  return {
    ms: of(({ ms }) => ms),
    heap_mb: of(({ heap_mb }) => heap_mb),
    footprint_mb: of(({ footprint_mb }) => footprint_mb),
  };
}

/** Python environments are published as wheels, listed for pip, and not played. */
import { env } from "cloudflare:workers";
import { beforeAll, expect, test } from "vitest";
import { PublishedVersion } from "../../src/contract/published-environment.ts";
import { prefersJson } from "../../src/hub/python-format.ts";
import { versionOfPython } from "../../src/hub/python-names.ts";
import { takeDown } from "../../src/hub/service.ts";
import { admit } from "../accounts/admit.ts";
import { openPlatform, type TestApi } from "../kernel/platform.ts";
import { pack, send } from "./packages.ts";
import { type Wheel, wheelOf, zipOf } from "./wheels.ts";

let alice: TestApi;
let bob: TestApi;
let owner = "";
beforeAll(async () => {
  [alice, bob] = [await openPlatform(), await openPlatform()];
  owner = `alice-${crypto.randomUUID().slice(0, 8)}`;
});

const sendWheel = ({ bytes, file }: Wheel, query = "") =>
  send(alice, bytes, new URLSearchParams(`file=${encodeURIComponent(file)}&owner=${owner}&${query}`).toString());

async function publish(wheel: Wheel, query = "visibility=public") {
  const reply = await sendWheel(wheel, query);
  expect(reply.status, await reply.clone().text()).toBe(201);
  return PublishedVersion.parse(await reply.json());
}

const JSON_TYPE = "application/vnd.pypi.simple.v1+json";
const accepting = (accept: string) => ({ headers: { accept } });
const change = (id: string, body: object) =>
  alice.ask(`/v1/environments/${encodeURIComponent(id)}`, {
    method: "PATCH",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });

test("a wheel is published with the version of its METADATA, listed with its hash, and refused for a run", async () => {
  const wheel = await wheelOf("Guess_Word", "1.0", ["Summary: a game", "Requires-Python: >=3.9", "License: MIT"]);
  const version = await publish(wheel);
  expect(version).toMatchObject({
    ...{ id: `${owner}/guess-word@1.0.0`, kind: "python", description: "a game", license: "MIT", protocol: null },
    ...{ tags: ["latest"], package: { file: wheel.file }, provenance: { builder: "by-hand 1.0" } },
    validation: { checks: [{ status: "skipped", message: expect.stringContaining("does not play") }] },
  });
  const at = `/python/${owner}/simple/guess-word/`;
  const listed = await bob.ask(at, accepting(`${JSON_TYPE}, text/html; q=0.01`));
  const { files } = await listed.json<{ files: { url: string; filename: string }[] }>();
  const [file] = files;
  expect(file).toMatchObject({
    ...{ filename: wheel.file, hashes: { sha256: version.digest.replace("sha256:", "") }, yanked: false },
    ...{ "requires-python": ">=3.9", size: wheel.bytes.byteLength, "upload-time": expect.stringMatching(/^20.*Z$/) },
  });
  const path = new URL(file?.url ?? "", `http://x${at}`).pathname;
  expect(new Uint8Array(await (await bob.ask(path)).arrayBuffer())).toEqual(wheel.bytes);
  expect(await (await bob.ask(`${path}.metadata`)).text()).toContain("Name: Guess_Word\n");
  expect(await (await bob.ask(`/v1/environments/${encodeURIComponent(version.id)}/readme`)).text()).toBe(
    "# Guess_Word\n",
  );
  const page = await (await bob.ask(at, accepting("text/html"))).text();
  expect(page).toContain(`href="../../files/${wheel.file}#sha256=`);
  expect(page).toContain('data-requires-python="&gt;=3.9"');
  const body = { environment: version.id, num_examples: 1, model: "m", endpoint: { base_url: env.MODEL_URL } };
  const run = await bob.post("/v1/runs", body);
  expect([run.status, await run.text()]).toEqual([400, expect.stringContaining("is a Python environment")]);
});

test("a name or an address in another form leads to the list", async () => {
  for (const path of ["Guess_Word/", "guess.word", "guess-word"]) {
    const moved = await bob.ask(`/python/${owner}/simple/${path}`, { redirect: "manual" });
    expect([moved.status, moved.headers.get("location")]).toEqual([301, `/python/${owner}/simple/guess-word/`]);
  }
  const projects = await bob.ask(`/python/${owner}/simple/`, accepting(JSON_TYPE));
  expect(await projects.json()).toMatchObject({ projects: [{ name: "guess-word" }] });
});

test("a yanked wheel is listed with the reason, and one that was taken down is not", async () => {
  for (const version of ["1.0.0", "1.1.0rc1", "1.1.0"]) await publish(await wheelOf("states", version));
  await change(`${owner}/states@1.0.0`, { yanked: { reason: 'wrong "reward"' } });
  await takeDown(env, `${owner}/states@1.1.0-rc.1`, { reason: "malware", now: Date.now() });
  const at = `/python/${owner}/simple/states/`;
  const { versions, files } = await (await bob.ask(at, accepting(JSON_TYPE))).json<{
    versions: string[];
    files: { yanked: string | boolean }[];
  }>();
  expect(versions).toEqual(["1.0.0", "1.1.0"]);
  expect(files.map(({ yanked }) => yanked)).toEqual(['wrong "reward"', false]);
  expect(await (await bob.ask(at)).text()).toContain('data-yanked="wrong &quot;reward&quot;"');
  expect((await bob.ask(`/python/${owner}/files/states-1.1.0rc1-py3-none-any.whl`)).status).toBe(404);
});

test("a private wheel is found only with the key of its project, which may be a password", async () => {
  await publish(await wheelOf("hidden", "1.0.0"), "");
  const key = await admit(alice.scope);
  const paths = [`/python/${owner}/simple/hidden/`, `/python/${owner}/files/hidden-1.0.0-py3-none-any.whl`];
  const listed = async (api: TestApi) => (await api.ask(`/python/${owner}/simple/`)).text();
  expect([await listed(alice), await listed(bob)]).toEqual([
    expect.stringContaining("hidden"),
    expect.not.stringContaining("hidden"),
  ]);
  for (const path of paths) {
    expect([(await alice.ask(path)).status, (await bob.ask(path)).status]).toEqual([200, 404]);
    const basic = (password: string) => ({ headers: { authorization: `Basic ${btoa(`__token__:${password}`)}` } });
    expect((await alice.ask(path, basic(key))).status).toBe(200);
    expect((await alice.ask(path, basic("guess"))).status).toBe(401);
    // No other route takes a password.
    expect((await alice.ask("/v1/whoami", basic(key))).status).toBe(401);
  }
});

test("versions of both kinds cannot share a name, and a version never changes", async () => {
  const first = await publish(await wheelOf("fixed", "1.0.0"));
  expect(
    await publish(await wheelOf("fixed", "1.0"), "")
      .then(({ digest }) => digest)
      .catch(() => "refused"),
  ).toBe("refused");
  const npm = await send(alice, await pack({ name: `${owner}/fixed`, version: "2.0.0", code: "export default 1" }));
  expect([npm.status, await npm.text()]).toEqual([409, expect.stringContaining("is a python environment")]);
  expect((await publish(await wheelOf("fixed", "1.0.0"), "")).digest).toBe(first.digest);
});

test("a wheel that cannot be read is refused with the reason", async () => {
  const { file, bytes } = await wheelOf("broken", "1.0.0");
  const metadata = "Metadata-Version: 2.1\nName: broken\nVersion: 1.0.0\n\n";
  const folder = "broken-1.0.0.dist-info";
  const wheel = `${folder}/WHEEL`;
  const listed = { [wheel]: "Wheel-Version: 1.0\n", [`${folder}/RECORD`]: "" };
  const good = { ...listed, [`${folder}/METADATA`]: metadata };
  const damaged = await zipOf({ "broken/a.py": "x", ...good });
  // The checksum of the first file.
  damaged[14] = (damaged[14] ?? 0) ^ 1;
  const withMetadata = (text: string) => zipOf({ ...good, [`${folder}/METADATA`]: text });
  const refused: [bytes: Uint8Array<ArrayBuffer>, file: string, why: RegExp][] = [
    [bytes, "broken-2.0.0-py3-none-any.whl", /file name is of broken 2\.0\.0, but its METADATA of broken 1\.0\.0/],
    [bytes, "other-1.0.0-py3-none-any.whl", /file name is of other/],
    [bytes, "broken.zip", /not the name of a wheel/],
    [new Uint8Array([1, 2, 3]), file, /not a valid zip file/],
    [damaged, file, /not a valid zip file/],
    [bytes.slice(0, bytes.byteLength - 10), file, /not a valid zip file/],
    [await zipOf({ ...good, "../evil.py": "x" }), file, /out of the wheel|not a valid zip file/],
    [await zipOf({ ...good, "/etc/passwd": "x" }), file, /out of the wheel|not a valid zip file/],
    [await zipOf({ ...good, zeros: "0".repeat(13 * 1024 * 1024) }), file, /more than \d+ bytes unpacked/],
    [
      await zipOf({ ...good, ...Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`${n}`, ""])) }),
      file,
      /more than 1000 files/,
    ],
    [await zipOf({ "broken/a.py": "" }), file, /has 0 folders \*\.dist-info/],
    [await zipOf({ ...good, "more-1.dist-info/METADATA": metadata }), file, /has 2 folders/],
    [await zipOf({ [`${folder}/METADATA`]: metadata, [wheel]: "Wheel-Version: 1.0\n" }), file, /has no .*RECORD/],
    [await zipOf({ ...good, [wheel]: "Wheel-Version: 2.0\n" }), file, /Wheel-Version: must be 1\.0/],
    [await zipOf({ ...good, [wheel]: "Wheel-Version: 1.0\nGenerator: \u001b[31m\n" }), file, /Generator: /],
    [await withMetadata(`${"a:\n".repeat(80_000)}${metadata}`), file, /more than 1000 fields/],
    [await zipOf(listed), file, /has no broken-1\.0\.0\.dist-info\/METADATA/],
    [await withMetadata("Name: broken\nVersion: 1.0.0\n"), file, /no Metadata-Version/],
    [await withMetadata(metadata.replace("1.0.0", "1.0.0.post1")), file, /Version: 1\.0\.0\.post1: must be/],
    [await withMetadata(metadata.replace("Name: broken", "Name: -")), file, /Name: must be letters/],
    [await withMetadata(`Requires-Python: the newest\n${metadata}`), file, /Requires-Python: the newest/],
  ];
  for (const [sent, name, why] of refused) {
    const reply = await sendWheel({ bytes: sent, file: name });
    expect([reply.status, await reply.text()], String(why)).toEqual([400, expect.stringMatching(why)]);
  }
  const nameless = await send(alice, bytes, `owner=${owner}`);
  expect([nameless.status, await nameless.text()]).toEqual([400, expect.stringContaining("file: is required")]);
});

test("versions of Python that have a place in the order of semver are taken", () => {
  const versions = [
    "1",
    "1.2",
    "1.2.3",
    "0.1.0a1",
    "1.0.0b2",
    "2.0rc10",
    "1.0.post1",
    "1.0.dev1",
    "1!1.0",
    "1.0+a",
    "v1.0",
    "01.0",
  ];
  expect(versions.map(versionOfPython)).toEqual([
    ...["1.0.0", "1.2.0", "1.2.3", "0.1.0-a.1", "1.0.0-b.2", "2.0.0-rc.10"],
    ...[null, null, null, null, null, null],
  ]);
});

test("JSON is answered to those who prefer it, and HTML to all others", () => {
  const pip = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01";
  expect([pip, JSON_TYPE, "application/json"].map(prefersJson)).toEqual([true, true, true]);
  const html = ["", "*/*", "text/html", `${JSON_TYPE};q=0.1, text/html`, `${JSON_TYPE};q=0`, "image/png"];
  expect(html.map(prefersJson)).toEqual(html.map(() => false));
});

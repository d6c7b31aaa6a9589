import { expect, test } from "bun:test";
import { until } from "../../fakes/until.ts";
import { ADMIN, Folder, GatewayProcess } from "../../process/gateway.ts";
import { rounds } from "../../rounds.ts";

/** Three workers that serve what the environment offers, and a model that the file adds at one of two prices. */
const PRICES = [
  { input: 1, output: 10 },
  { input: 3, output: 20 },
];
const COMMON =
  "workers: 3\ndefaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }\n";
const fileAt = ({ input, output }: (typeof PRICES)[number]): string => `${COMMON}
add_models:
  - id: new/model
    context_length: 8192
    max_output_tokens: 100
    price: { input: ${input}, output: ${output} }
    routes: [{ host: sim, model: echo }]
`;
const REQUESTS = rounds(300, 1_000, 10_000);
const AT_ONCE = 20;

test(`a new model is sold without a restart, and none of ${REQUESTS} requests at three workers is charged a mixed price`, async () => {
  const folder = new Folder(COMMON);
  const gateway = await GatewayProcess.start(folder);
  try {
    const { key } = await gateway.keyWith(100);
    const body = {
      model: "new/model",
      max_tokens: 20,
      messages: [{ role: "user", content: "one two three" }],
    };
    const post = () => gateway.post("/v1/chat/completions", body, key);
    expect((await post()).json.error.code).toBe("unknown_model");

    folder.configure(fileAt(PRICES[0]!));
    expect((await gateway.post("/admin/reload", {}, ADMIN)).status).toBe(200);
    // Each connection may reach another worker.
    await until(async () =>
      (await Promise.all(Array.from({ length: 12 }, post))).every(({ status }) => status === 200),
    );

    const receipts: string[] = [];
    let reloads = 0;
    while (receipts.length < REQUESTS) {
      folder.configure(fileAt(PRICES[++reloads % 2]!));
      const reloading = gateway.post("/admin/reload", {}, ADMIN);
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, post));
      expect(answers.map(({ status }) => status)).toEqual(Array(AT_ONCE).fill(200));
      receipts.push(...answers.map(({ headers }) => headers.get("x-gateway-receipt")!));
      expect((await reloading).status).toBe(200);
    }

    const versions = new Map<string, object>();
    for (const id of receipts) {
      const { price, tokens, cost_usd } = (await gateway.get(`/v1/receipts/${id}`, key)).json;
      const { version, input, output } = price;
      expect(versions.get(version) ?? { input, output }).toEqual({ input, output });
      versions.set(version, { input, output });
      expect(cost_usd).toBeCloseTo((tokens.input * input + tokens.output * output) / 1e6, 9);
    }
    expect([...versions.values()].sort()).toEqual(expect.arrayContaining(PRICES));
    expect(versions.size).toBe(2);
    expect((await gateway.audit()).json.ok).toBe(true);
  } finally {
    await gateway.stop();
    folder.remove();
  }
}, 300_000);

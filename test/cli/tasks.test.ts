import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openLargeWorld } from "../browser/large-world.ts";
import { ADMIN } from "../process/gateway.ts";
import { gateway as command } from "./command.ts";

type World = Awaited<ReturnType<typeof openLargeWorld>>;
type Answer = ReturnType<typeof JSON.parse>;

/** The tasks of test/browser/tasks.test.ts: what each takes is one command. `KEY` and the like stand for the world's. */
const TASKS: readonly (readonly [
  task: string,
  as: "owner" | "operator",
  line: string,
  fits: (a: Answer) => unknown,
])[] = [
  [
    "which key spent most yesterday",
    "owner",
    "spending yesterday --limit 1",
    ({ data }) => data[0].cost_usd > 0,
  ],
  ["stop a key", "owner", "keys revoke SECOND", ({ state }) => state === "revoked"],
  [
    "why did yesterday's requests fail",
    "owner",
    "receipts --since YESTERDAY --until TODAY --state failed --limit 5",
    ({ data }) => data.length === 5 && data.every((row: Answer) => row.error_code === "upstream_error"),
  ],
  [
    "what became of the request whose receipt a program logged",
    "owner",
    "receipt RECEIPT",
    ({ attempts }) => attempts.length > 0,
  ],
  [
    "one key's requests at one host that cost most",
    "owner",
    "receipts --key THIRD --host lagoon --min-cost-usd 0.0001 --limit 3",
    ({ data }) => data.every((row: Answer) => row.host === "lagoon"),
  ],
  [
    "yesterday's receipts for a spreadsheet",
    "operator",
    "usage BALANCE --since YESTERDAY --until TODAY",
    ({ data }) => data.length > 0,
  ],
  [
    "a cap of $2 a day on a key",
    "owner",
    "keys change THIRD --daily-limit-usd 2",
    (a) => a.daily_limit_usd === 2,
  ],
  ["a key by its name", "owner", "keys list --search key-0077", ({ data }) => data[0].name === "key-0077"],
  ["replace a key that was lost", "owner", "keys rotate FOURTH", ({ key }) => key.startsWith("or-live-")],
  [
    "a budget of $50 a month",
    "owner",
    "budgets create team --cap-usd 50 --window month",
    (a) => a.cap_usd === 50,
  ],
  [
    "at most $1 a day for each end user",
    "owner",
    "budgets create each --cap-usd 1 --window day --per tag:user",
    ({ per }) => per === "tag:user",
  ],
  [
    "have events sent to a program",
    "owner",
    "webhooks add https://hooks.example.com/events --event claim.undone",
    ({ secret }) => secret.startsWith("whsec_"),
  ],
  ["be notified below $20", "owner", "owner low-credit 20", (a) => a.low_credit_usd === 20],
  [
    "the cheapest model with tools and a context of 200k",
    "owner",
    "models list --context 200000 --can tools --sort input",
    ({ data }) => data[0].context_length >= 200_000 && data[0].price.input <= data.at(-1).price.input,
  ],
  [
    "which host is down, since when and why",
    "operator",
    "hosts",
    (hosts) => hosts.some((one: Answer) => one.failing_since !== null),
  ],
  [
    "why did everybody's latest request fail",
    "operator",
    "receipts --state failed --limit 1",
    ({ data }) => data[0].attempts[0].outcome === "unreachable",
  ],
  [
    "which key of all customers spent most yesterday",
    "operator",
    "spending yesterday",
    ({ data }) => data.length > 1,
  ],
  [
    "everybody's failed requests of the last days",
    "operator",
    "receipts --state failed --since YESTERDAY --error upstream_error --limit 10",
    ({ data }) => data.length === 10,
  ],
  ["balances that run out", "operator", "balances --below 5", ({ data }) => data.length === 0],
  [
    "whose key this is, which leaked",
    "operator",
    "keys show LEAKED",
    ({ prefix }) => prefix.startsWith("or-live-"),
  ],
  ["and stop it", "operator", "keys revoke LEAKED", ({ state }) => state === "revoked"],
  [
    "a second key for a customer",
    "operator",
    "keys create --balance BALANCE",
    ({ key }) => key.startsWith("or-live-"),
  ],
  [
    "$25 for a customer who has paid an invoice",
    "operator",
    "credit BALANCE 25 --note Invoice-1041",
    (a) => a.amount_usd === 25,
  ],
  ["a customer's own prices", "operator", "price-list BALANCE partners", (a) => a.price_list === "partners"],
];

describe("with 225 models, 100 keys and 20,000 receipts, one command answers", () => {
  let world: World;
  const names: Record<string, string> = {};

  beforeAll(async () => {
    world = await openLargeWorld({ keys: 100, receipts: 20_000 });
    const { gateway, owner, keyIds } = world;
    // Nobody listens at its hosts.
    for (let request = 0; request < 4; request++) await gateway.chat(owner.key, { model: "aurora/model-0" });
    const { json } = await gateway.send("GET", "/v1/receipts?limit=1", { bearer: owner.recovery_secret });
    const leaked = await gateway.admin(`/admin/balances/${owner.balance_id}/keys`, {});
    const today = Date.now() - (Date.now() % 86_400_000);
    const [, SECOND, THIRD, FOURTH] = keyIds as [string, string, string, string];
    Object.assign(names, { SECOND, THIRD, FOURTH, BALANCE: owner.balance_id, LEAKED: leaked.json.key });
    names.RECEIPT = json.data[0].id;
    names.TODAY = new Date(today).toISOString().slice(0, 10);
    names.YESTERDAY = new Date(today - 86_400_000).toISOString().slice(0, 10);
  }, 120_000);
  afterAll(() => world?.gateway.close());

  test.each(TASKS)(
    "%s, by the %s: gateway %s",
    async (_task, as, line, fits) => {
      const args = line.split(" ").map((word) => names[word] ?? word);
      const credential =
        as === "owner" ? { GATEWAY_OWNER: world.owner.recovery_secret } : { GATEWAY_ADMIN_TOKEN: ADMIN };
      const { out, err, code } = await command([...args, "--json"], {
        GATEWAY_URL: world.gateway.url,
        ...credential,
      });
      expect([code, err]).toEqual([0, ""]);
      const answer = JSON.parse(out);
      expect(fits(answer) ? "fits" : answer).toBe("fits");
    },
    60_000,
  );
});

test("what has no owner, no such period or no such ability is refused with the way on", async () => {
  for (const [line, code, message] of [
    ["keys rotate key_1", 2, "GATEWAY_OWNER"],
    ["spending fortnight", 2, "yesterday"],
    ["models list --can fly", 2, "tools"],
    ["receipts --state lost", 2, "written_off"],
    ["receipts --min-cost-usd much", 2, "amount in USD"],
    ["owner low-credit -- -1", 2, "amount in USD"],
  ] as const) {
    const run = await command(line.split(" "), {
      GATEWAY_URL: "http://127.0.0.1:9",
      GATEWAY_ADMIN_TOKEN: ADMIN,
    });
    expect([line, run.code, run.err]).toEqual([line, code, expect.stringContaining(message)]);
  }
}, 60_000);

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { status } from "../fakes/behaviours.ts";
import { type FakeHost, startFakeHost } from "../fakes/host.ts";
import { type Made, type OpenGateway, open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { browserMissing, endVisits, Visitor } from "./browser.ts";

describe.skipIf(browserMissing)("the operator", () => {
  let gateway: OpenGateway;
  let busy: FakeHost;
  let operator: Visitor;
  let customer: Made;
  let target: string;

  beforeAll(async () => {
    busy = await startFakeHost(() => status(429, { "retry-after": "30" }));
    target = mkdtempSync(join(tmpdir(), "export-"));
    gateway = await open(`
contact: mailto:ops@example.com
export: { to: "file:${target}", every: 1s }
hosts:
  - { id: sim, base_url: simulated, speaks: [chat.completions] }
  - { id: busy, base_url: "${busy.url}/v1", speaks: [chat.completions], max_concurrent: 4000 }
models:
  - { id: sim/echo, context_length: 100000, max_output_tokens: 4000, price: { input: 1, output: 1 }, routes: [{ host: sim, model: echo }] }
  - { id: test/busy, context_length: 100000, max_output_tokens: 4000, price: { input: 1, output: 1 }, routes: [{ host: busy, model: m }] }
price_lists: { partner: [{ model: "*", factor: 0.9 }], special: [{ model: "sim/*", factor: 2 }] }
`);
    customer = await gateway.key(0);
    operator = await Visitor.arrive(gateway.url);
  });
  afterAll(async () => {
    await endVisits();
    await gateway?.close();
    await busy?.close();
    rmSync(target, { recursive: true, force: true });
  });

  const chat = (model: string) => gateway.chat(customer.key, { model });

  async function find(text: string): Promise<void> {
    await operator.link("Balances").click();
    await operator.field("Find").fill(text);
    await operator.button("Open").click();
  }

  test("is shown nothing without the admin token", async () => {
    await operator.goto("/admin");
    await operator.field("Admin token").fill(customer.recovery_secret);
    await operator.button("Open").click();
    await operator.page.getByText("That is not this gateway's admin token.").waitFor();
    await operator.field("Admin token").fill(ADMIN);
    await operator.button("Open").click();
    await operator.heading("Latest failures").waitFor();
  });

  test("is reached by a customer without credit, where the configuration says how", async () => {
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.recover(customer.recovery_secret);
    await visitor.link("Credit").click();
    const link = visitor.link("the operator of this gateway");
    expect(await link.getAttribute("href")).toBe("mailto:ops@example.com");
  });

  test("finds a balance by a key's id, and credits it once", async () => {
    await find(customer.id);
    await operator.link(customer.balance_id).click();
    await operator.button("Add credit").click();
    await operator.field("Amount in dollars").fill("12.5");
    await operator.field("Note").fill("Invoice 7");
    await operator.page.getByRole("dialog").getByRole("button", { name: "Add credit" }).dblclick();
    await operator.page.getByText("$12.50", { exact: true }).waitFor();
    const { json } = await gateway.send("GET", "/v1/me", { bearer: customer.recovery_secret });
    expect(json.balance_usd).toBe(12.5);
    expect((await chat("sim/echo")).status).toBe(200);
  });

  test("takes an amount back, sees an error when it is too much, and then takes all that is left", async () => {
    await gateway.credit(customer.balance_id, 1_000);
    await operator.page.reload();
    await operator.button("Take credit back").click();
    await operator.field("Amount in dollars").fill("5000");
    await operator.button("Take back").click();
    await operator.page.getByText("is available now").waitFor();
    await operator.field("Amount in dollars").fill("990");
    await operator.field("Note").fill("1000 for 10");
    await operator.button("Take back").dblclick();
    await operator.page.getByText("1000 for 10", { exact: true }).first().waitFor();
    await operator.page.getByText("−$990.00").waitFor();
    await operator.button("Take credit back").click();
    await operator.field("How much").selectOption("all");
    await operator.button("Take back").click();
    await operator.page.getByRole("dialog").waitFor({ state: "detached" });
    const { json } = await gateway.send("GET", "/v1/me", { bearer: customer.recovery_secret });
    expect(json.balance_usd).toBe(0);
    await operator.page.getByRole("button", { name: "Take credit back", disabled: true }).waitFor();
    await gateway.credit(customer.balance_id, 10);
    await operator.page.reload();
  });

  test("raises a customer's limit, and the rest of the key stays", async () => {
    await operator.button(/^Limits/).click();
    await operator.page.getByText("The balance's credit always applies.").waitFor();
    await operator.field("Dollars per day").fill("80");
    await operator.button("Save").click();
    await operator.page.getByRole("dialog").waitFor({ state: "detached" });
    await operator.page.getByText("of $80").waitFor();
    const { json } = await gateway.send("GET", "/v1/me", { bearer: customer.key });
    expect(json.key).toMatchObject({ daily_limit_usd: 80, rpm_limit: 60, allowed_models: null });
  });

  test("sees which limits a new key of a customer gets where nothing is entered, and creates it", async () => {
    await operator.goto(`/admin#/balances/${customer.balance_id}`);
    await operator.button("New key").click();
    const dialog = operator.page.getByRole("dialog");
    await dialog.getByPlaceholder("default: 5", { exact: true }).waitFor();
    await dialog.getByText("Leave empty for the default that the field shows.").waitFor();
    await operator.field("Name").fill("by the operator");
    await operator.field("Dollars per month").fill("7");
    await operator.button("Create key").click();
    await operator.field("I saved the API key").check();
    await operator.button("Done").click();
    await operator.link("by the operator").click();
    await operator.heading("by the operator").waitFor();
    const { json } = await gateway.send("GET", "/v1/keys", { bearer: customer.recovery_secret });
    const made = json.data.find(({ name }: { name: string }) => name === "by the operator");
    expect(made).toMatchObject({ daily_limit_usd: 5, monthly_limit_usd: 7, rpm_limit: 60 });
  });

  test("raises a budget that its owner has set", async () => {
    await gateway.send("POST", "/v1/budgets", {
      bearer: customer.recovery_secret,
      json: { name: "crew", cap_usd: 3, window: "week" },
    });
    await operator.link("Balances").click();
    await operator.link(customer.balance_id).click();
    await operator.button("Change crew").click();
    expect(await operator.button("Delete").count()).toBe(0);
    await operator.field("Cap in dollars").fill("40");
    await operator.button("Save").click();
    await operator.page.getByText("of $40.00").waitFor();
    const { json } = await gateway.send("GET", "/v1/budgets/crew", { bearer: customer.recovery_secret });
    expect(json).toMatchObject({ cap_usd: 40, window: "week" });
  });

  test("finds the receipt that a customer reports, and the way from it to the customer's other requests", async () => {
    const answer = await gateway.chat(customer.key, { model: "sim/echo" });
    await find(answer.headers.get("x-gateway-receipt")!);
    await operator.heading("Attempts").waitFor();
    await operator.link(customer.balance_id).click();
    await operator.heading("Requests").waitFor();
    await operator.page.locator("td.when").first().waitFor();
  });

  test("finds whose key it is that somebody found", async () => {
    await find(customer.key);
    // The list of balances, which is left, has the same link.
    await operator.page.waitForURL((url) => url.hash.endsWith(`#/keys/${customer.id}`));
    await operator.link(customer.balance_id).waitFor();
    expect(operator.page.url()).toEndWith(`#/keys/${customer.id}`);
  });

  test("learns that nobody has signed in with an address", async () => {
    await find("nobody@example.com");
    await operator.page.getByText("No account with a balance has this").waitFor();
    await operator.field("Find").fill(customer.balance_id);
    await operator.button("Open").click();
    await operator.button("Add credit").waitFor();
  });

  test("tells a suspended owner since when, by whom, why, and what now", async () => {
    await gateway.admin(`/admin/accounts/${customer.balance_id}/suspend`, { reason: "acceptable_use" });
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.recover(customer.recovery_secret);
    const note = visitor.page.getByText(/^This balance is suspended since \w+ \d+, /);
    await note.waitFor();
    expect(await note.locator("..").textContent()).toMatch(
      / by the operator of this gateway, after an acceptable-use breach\. Requests are refused and charged nothing; .* contact the operator of this gateway and name the balance bal_/,
    );
    await gateway.admin(`/admin/accounts/${customer.balance_id}/unsuspend`, {});
  });

  test("suspends, with a reason that the customer sees, and lifts it", async () => {
    await operator.button("Suspend").click();
    await operator.field("Reason").selectOption("chargeback");
    await operator.field("Note").fill("case 12");
    await operator.button("Suspend now").click();
    await operator.page
      .getByText(/^Suspended since .* by admin, after a chargeback: this balance\./)
      .waitFor();
    await operator.page.getByRole("cell", { name: "case 12" }).waitFor();
    const refusal = await chat("sim/echo");
    expect([refusal.status, refusal.json.error.code]).toEqual([403, "account_suspended"]);
    expect(refusal.json.error.message).toContain("chargeback");
    await operator.button("Lift suspension").click();
    await operator.button("Suspend").waitFor();
    await operator.page.getByText("Lifted").first().waitFor();
    expect((await chat("sim/echo")).status).toBe(200);
  });

  test("sees which host has complained, what it is given now, and what rests", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => chat("test/busy")));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    await operator.link("Hosts").click();
    const card = operator.page.getByRole("region", { name: "busy" });
    await card.getByText(/^0 of \d\d slots in use · 4,000 allowed/).waitFor();
    await card.getByText("recently overloaded").waitFor();
    await card.getByText("resting", { exact: true }).waitFor();
    await card.getByText(/^(\d+) of \1 failed, last .*: status 429: /).waitFor();
    const { json } = await gateway.send("GET", "/admin/hosts", { bearer: ADMIN });
    expect(json.data).toMatchObject([
      { id: "sim", max_concurrent: null, cut_workers: 0, waiting: 0 },
      { id: "busy", max_concurrent: 4_000, cut_workers: 1, waiting: 0 },
    ]);
    expect(json.data[1].limit).toBeLessThan(4_000);
  });

  test("sees who spends what, ordered as asked, and finds a key's requests", async () => {
    await operator.link("Usage").click();
    const list = (name: string) => operator.page.getByRole("region", { name, exact: true });
    await list("Balances").getByRole("link", { name: customer.balance_id }).waitFor();
    await list("Balances").getByText("no account").waitFor();
    await list("Models").getByText("sim/echo").waitFor();
    await list("Hosts")
      .getByRole("row", { name: /^sim .* new / })
      .waitFor();
    const cost = list("Keys").getByRole("columnheader", { name: "Cost" });
    expect(await cost.getAttribute("aria-sort")).toBe("descending");
    await list("Keys").getByRole("button", { name: "Requests" }).click();
    await list("Keys").locator("th[aria-sort]", { hasText: "Requests" }).waitFor();
    const [head, row] = (
      await operator.saved("Export CSV of usage by key", /^usage-by-key-week-.*\.csv$/)
    ).split("\n");
    expect(head).toStartWith("balance_id,email,wallet,key_id,key_name,requests,");
    expect(row).toStartWith(`${customer.balance_id},,,${customer.id},,`);
    await operator.field("30 days").check();
    expect(operator.page.url()).toEndWith("#/usage?period=month&order=requests");
    await list("Keys").getByRole("link", { name: "Unnamed key" }).click();
    await operator.heading("Requests").waitFor();
    await operator.page.locator("td.when").first().waitFor();
    expect(operator.page.url()).toEndWith(`#/keys/${customer.id}`);
  });

  test("sees how much a list leaves out, and the rest", async () => {
    const keys = Array.from({ length: 11 }, () => gateway.key(1));
    for (const { key } of await Promise.all(keys)) await gateway.chat(key, { model: "sim/echo" });
    await operator.link("Usage").click();
    const balances = operator.page.getByRole("region", { name: "Balances", exact: true });
    await balances.getByText("and 2 more").waitFor();
    await balances.getByRole("button", { name: "Show more balances" }).click();
    await balances.locator("tbody tr").nth(11).waitFor();
    expect(await balances.getByText("more", { exact: false }).count()).toBe(0);
  });

  test("reads why usage cannot be shown, and tries again", async () => {
    const error = { message: "Too many usage reports.", code: "rate_limited", param: null };
    await operator.page.route(
      "**/admin/usage?*",
      (route) => route.fulfill({ status: 429, json: { error } }),
      {
        times: 1,
      },
    );
    await operator.field("24 hours").check();
    await operator.page.getByText("Too many usage reports.").waitFor();
    await operator.button("Try again").click();
    await operator.heading("Spend").waitFor();
  });

  test("sees that nothing was asked in a period as such", async () => {
    await operator.page.route("**/admin/usage?*", async (route) => {
      const { total, ...rest } = await (await route.fetch()).json();
      await route.fulfill({ json: { ...rest, total: { ...total, requests: 0, cost_before_usd: 0 } } });
    });
    await operator.field("7 days").check();
    await operator.page.getByText("No requests in this period").waitFor();
    await operator.page.unroute("**/admin/usage?*");
  });

  test("sees that the books are right, and the configuration without secrets", async () => {
    await operator.link("Books").click();
    await operator.page.getByText("The books are right, to the nano-dollar.").waitFor();
    await operator.page.getByText(`Export to file:${target}`).waitFor();
    await operator.page.getByText("receipts", { exact: true }).waitFor();
    await operator.link("Configuration").click();
    await operator.page.getByText("open_tier").waitFor();
    expect(await operator.page.content()).not.toContain(ADMIN);
    await operator.button("Reload the file").click();
    await operator.page.getByText("The file was reloaded and is in force.").waitFor();
  });

  test("revokes a key that was reported as leaked", async () => {
    await operator.link("Balances").click();
    await operator.link(customer.balance_id).click();
    await operator.button(/^Revoke or-live/).click();
    await operator.button("Revoke now").click();
    // Narrow screens have it next to the name.
    await operator.page.getByText("revoked", { exact: true }).filter({ visible: true }).waitFor();
    expect((await chat("sim/echo")).status).toBe(401);
  });

  test("detaches a balance from the account that claimed it, and not an account's own", async () => {
    const { key, balance_id } = await gateway.key(0);
    const json = { email: "thief@example.com" };
    await gateway.send("POST", "/v1/me/claim", { bearer: key, json });
    const outbox = join(gateway.gateway.folder.path, "outbox");
    const mail = readFileSync(join(outbox, readdirSync(outbox).sort().at(-1)!), "utf8");
    const token = /#signin=(\S+)/.exec(mail)![1]!;
    const { session } = (await gateway.send("POST", "/v1/auth/email/verify", { json: { token } })).json;
    const own = (await gateway.send("GET", "/v1/me", { bearer: session })).json.balance_id;
    await operator.link("Balances").click();
    await operator.page.getByRole("row", { name: new RegExp(`thief@example.com ${balance_id}`) }).waitFor();
    for (const [id, shown] of [
      [balance_id, "none"],
      [own, "made by the account's first sign-in"],
    ] as const) {
      await find(id);
      await operator.button("Detach").click();
      await operator.button("Detach now").click();
      await operator.page
        .getByText(shown, { exact: shown === "none" })
        .first()
        .waitFor();
    }
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.account).toBeNull();
    await operator.button("Leave it").click();
  });

  test("sees by which price list a customer is charged, and what a request was tagged with", async () => {
    const listed = (await gateway.admin("/admin/keys", { price_list: "partner" })).json;
    await gateway.credit(listed.balance_id, 1);
    await gateway.send("PATCH", `/admin/keys/${listed.id}`, {
      bearer: ADMIN,
      json: { price_list: "special" },
    });
    const { headers } = await gateway.send("POST", "/v1/chat/completions", {
      bearer: listed.key,
      headers: { "x-gateway-tags": "customer=acme; feature=search" },
      json: { model: "sim/echo", messages: [{ role: "user", content: "Hello" }] },
    });
    await operator.goto(`/admin#/balances/${listed.balance_id}`);
    await operator.page.getByText("partner", { exact: true }).first().waitFor();
    await operator.page.getByText("Price list special", { exact: true }).waitFor();
    await operator.goto(`/admin#/receipts/${headers.get("x-gateway-receipt")}`);
    await operator.page.getByText("customer=acme; feature=search", { exact: true }).waitFor();
    await operator.page.getByText("special", { exact: true }).waitFor();
  });

  test("who may only read has no button for what they may not do, and sees who changed what", async () => {
    const json = { name: "rita", role: "read" };
    const { token } = (await gateway.admin("/admin/operators", json)).json;
    const reader = await Visitor.arrive(gateway.url);
    await reader.operate(token);
    await reader.page.getByText("rita, read").waitFor();
    await reader.goto(`/admin#/balances/${customer.balance_id}`);
    await reader.page.getByText("Held by open requests").waitFor();
    for (const name of ["Add credit", "Take credit back", "Suspend", "New key", "Revoke"])
      expect([name, await reader.button(name).count()]).toEqual([name, 0]);
    expect(await reader.page.getByRole("link", { name: "Operators" }).count()).toBe(0);
    await reader.goto("/admin#/changes?action=operator.added");
    await reader.page.getByText("operator added").last().waitFor();
    await reader.page.locator("td").getByText("rita", { exact: true }).waitFor();
  });

  test("adds an operator, whose token is shown once, replaces it, and removes the operator", async () => {
    const enter = async (token: string) => {
      const eve = await Visitor.arrive(gateway.url);
      await eve.operate(token);
      return eve;
    };
    const refused = async (token: string) => {
      await (await enter(token)).page.getByText("That is not this gateway's admin token.").waitFor();
    };
    const dialog = operator.page.getByRole("dialog");
    const keep = async (): Promise<string> => {
      const token = await operator.page.locator("output.secret-value").textContent();
      expect(await operator.button("Done").isDisabled()).toBe(true);
      await operator.field("I saved the Operator token").check();
      await operator.button("Done").click();
      return token!;
    };
    await operator.link("Operators").click();
    await operator.page.getByText("you", { exact: true }).waitFor();
    await operator.button("Add operator").click();
    await operator.field("Name").fill("Eve");
    await operator.field("Role").selectOption("admin");
    await operator.field("Last day").fill("2999-12-31");
    await operator.button("Add").click();
    await dialog.getByText("1 to 32 of a-z").waitFor();
    await operator.field("Name").fill("eve");
    await operator.button("Add").click();
    const first = await keep();
    await operator.page.getByText("Jan 1, 3000").waitFor();
    expect(await operator.page.content()).not.toContain(first);

    const eve = await enter(first);
    await eve.link("Operators").click();
    await eve.page.locator("tr", { hasText: "eve" }).getByText("you", { exact: true }).waitFor();
    expect(await eve.button("Remove eve").count()).toBe(0);
    expect(await eve.button("Remove admin").count()).toBe(0);

    await operator.button("New token for eve").click();
    await operator.button("Replace the token").click();
    const second = await keep();
    await refused(first);
    await (await enter(second)).page.getByText("eve, admin").waitFor();

    await operator.button("Remove eve").click();
    await operator.button("Remove now").click();
    await operator.link("eve").waitFor({ state: "detached" });
    await refused(second);
    const { json } = await gateway.admin("/admin/operators");
    expect(json.data.map(({ name }: { name: string }) => name)).not.toContain("eve");
  });

  test("sees on a balance's page who changed it, and older changes page by page, as its owner does", async () => {
    const { id, balance_id, recovery_secret } = await gateway.key(1);
    const rename = (name: string) =>
      gateway.send("PATCH", `/v1/keys/${id}`, { bearer: recovery_secret, json: { name } });
    for (let n = 1; n <= 30; n++) await rename(`name-${n}`);
    await operator.goto(`/admin#/balances/${balance_id}`);
    const owner = await Visitor.arrive(gateway.url);
    await owner.recover(recovery_secret);
    await owner.link("Account").click();
    for (const { page } of [operator, owner]) {
      const changes = page.locator("section", {
        has: page.getByRole("heading", { name: "What was changed" }),
      });
      await changes.getByText("name-29 → name-30").waitFor();
      expect(await changes.locator("tbody tr").count()).toBe(20);
      await changes.getByRole("button", { name: "Show older" }).click();
      await changes.getByText("name-1 → name-2", { exact: true }).waitFor();
      expect(await changes.getByText("name-1 → name-2", { exact: true }).count()).toBe(1);
    }
  });

  test("leaves no token behind", async () => {
    await operator.button("Sign out").click();
    await operator.field("Admin token").waitFor();
    expect(await operator.page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
  });
});

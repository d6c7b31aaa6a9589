import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Route } from "playwright-core";
import { type OpenGateway, open } from "../gateway/open.ts";
import { browserMissing, endVisits, Visitor } from "./browser.ts";

/** One person's way through the dashboard, on a real gateway with its simulated host, in a real browser. */
describe.skipIf(browserMissing)("without an account", () => {
  let gateway: OpenGateway;
  let visitor: Visitor;
  let key = "";
  let replacement = "";
  let recoveryLink = "";

  beforeAll(async () => {
    gateway = await open("");
    visitor = await Visitor.arrive(gateway.url);
  });
  afterAll(async () => {
    await endVisits();
    await gateway?.close();
  });

  const chat = (bearer: string) => gateway.chat(bearer, { model: "sim/echo:free" });

  test("set-up shows both secrets, and nothing about payment before both are confirmed as saved", async () => {
    await visitor.goto("/dashboard");
    await visitor.button("Create my key").click();
    const { page } = visitor;
    key = (await page.locator("output").nth(0).textContent())!;
    recoveryLink = (await page.locator("output").nth(1).textContent())!;
    expect(key).toMatch(/^or-live-\w{32}$/);
    expect(recoveryLink).toMatch(/\/dashboard#recover=or-rec-\w{44}$/);
    expect(await page.getByText(/credit|balance id|pay/i).count()).toBe(0);
    expect(await visitor.button("Continue").isDisabled()).toBe(true);
    await visitor.field("I saved the API key").check();
    expect(await visitor.button("Continue").isDisabled()).toBe(true);
    await visitor.field("I saved the recovery link").check();
    await visitor.button("Continue").click();
    await visitor.heading("Overview").waitFor();
    expect(await page.content()).not.toContain(key);
  });

  test("the playground streams a first answer, which has a receipt", async () => {
    await visitor.link("Playground").click();
    await visitor.field("Message").fill("the tide comes in");
    await visitor.page.keyboard.press("Enter");
    await visitor.link("Receipt of this answer").waitFor();
    expect(await visitor.page.getByRole("log").textContent()).toContain("You said: the tide comes in");
    await visitor.link("Receipt of this answer").click();
    await visitor.heading("Attempts").waitFor();
    expect(await visitor.page.locator("main").textContent()).toContain("sim/echo:free");
    await visitor.link("Receipts").click();
    await visitor.heading("Receipts").waitFor();
    // Waits, and fails should there be more than one.
    await visitor.page.locator("tbody tr").waitFor();
    await visitor.field("Outcome").selectOption("failed");
    await visitor.heading("No receipts here yet").waitFor();
    expect(visitor.page.url()).toEndWith("#/receipts?state=failed");
    await visitor.link("Receipts").click();
    await visitor.page.locator("tbody tr").waitFor();
  });

  test("Stop ends the wait for an answer, sends nothing again and gives the words back", async () => {
    const { page } = visitor;
    const requests: Route[] = [];
    await page.route("**/v1/chat/completions", (route) => void requests.push(route));
    await visitor.link("Playground").click();
    await visitor.field("Message").fill("too long a wait");
    await page.keyboard.press("Enter");
    await visitor.button("Stop").click();
    await visitor.button("Send").waitFor();
    expect(await visitor.field("Message").inputValue()).toBe("too long a wait");
    expect(requests).toHaveLength(1);
    // Otherwise it may yet go out once nothing is held back any more.
    await requests[0]!.abort();
    await page.unroute("**/v1/chat/completions");
    await visitor.link("Receipts").click();
  });

  test("a dialog begins at its first field, and a closed one gives the focus back to what opened it", async () => {
    const { page } = visitor;
    await visitor.link("Keys").click();
    await visitor.button("New key").focus();
    await page.keyboard.press("Enter");
    await page.locator("dialog :focus").waitFor();
    expect(await page.locator(":focus").getAttribute("placeholder")).toBe("my-agent");
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect(await page.locator(":focus").textContent()).toBe("New key");
  });

  test("a newcomer is shown what to write into a program, and it works with the key put in", async () => {
    const { page } = visitor;
    await visitor.link("Keys").click();
    const snippet = page.locator(".snippet");
    const command = (await snippet.textContent())!;
    expect(command).not.toContain("or-live-");
    const shell = Bun.spawn(["sh", "-c", command], { env: { ...process.env, KEY: key }, stderr: "ignore" });
    const answer = await new Response(shell.stdout).json();
    expect(answer.choices[0].message.content).toContain("Hello!");
    await visitor.field("Client").selectOption("Anthropic for Python");
    expect(await snippet.textContent()).toContain(`base_url="${gateway.url}"`);
  });

  test("receipts and usage are saved as files for a spreadsheet", async () => {
    await visitor.link("Keys").click();
    await visitor.link("Unnamed key").click();
    await visitor.button("Change limits").click();
    await visitor.field("Name").fill('=cmd("x")');
    await visitor.button("Save").click();
    await visitor.heading('=cmd("x")').waitFor();
    await visitor.link("Receipts").click();
    const [head, row, ...rest] = (
      await visitor.saved("Export CSV of these receipts", /^receipts-.*\.csv$/)
    ).split("\n");
    expect(head).toStartWith("created_at,id,state,error_code,key_id,key_name,model_requested,");
    const { data } = (await gateway.send("GET", "/v1/receipts", { bearer: key })).json;
    expect(row).toStartWith(
      `${data[0].created_at},${data[0].id},settled,,${data[0].key_id},"'=cmd(""x"")",${data[0].model_requested},sim/echo,sim,`,
    );
    expect(rest).toHaveLength(data.length);
    await visitor.link("Overview").click();
    const usage = await visitor.saved("Export CSV of usage", /^usage-week-.*\.csv$/);
    expect(usage).toMatch(/^start,name,requests,.*\n\d{4}-.*Z,sim\/echo,2,0,\d+,\d+,0\n$/);
  });

  test("of many models fifty are shown at first, and a search finds any", async () => {
    const { page } = visitor;
    await page.route("**/v1/catalog", async (route) => {
      const list = await (await route.fetch()).json();
      const data = Array.from({ length: 80 }, (_, index) => ({ ...list.data[0], id: `a/b-${index}` }));
      await route.fulfill({ json: { ...list, data } });
    });
    await visitor.link("Models").click();
    await page.locator("tbody tr").nth(49).waitFor();
    expect(await page.locator("tbody tr").count()).toBe(50);
    await visitor.field("Search").fill("b-79");
    await page.locator("tbody tr", { hasText: "a/b-79" }).waitFor();
    await visitor.field("Search").fill("");
    await visitor.button("Show more of 80").click();
    await page.locator("tbody tr").nth(79).waitFor();
    await page.unroute("**/v1/catalog");
  });

  test("a new key shows the limits that it gets by itself, and works to the end of its last day", async () => {
    await visitor.link("Keys").click();
    await visitor.button("New key").click();
    const shown = (label: string) => visitor.field(label).getAttribute("placeholder");
    expect([await shown("Dollars per day"), await shown("Tokens per minute")]).toEqual([
      "default: 5",
      "default: 400,000",
    ]);
    await visitor.field("Name").fill("for a while");
    await visitor.field("Last day").fill("2999-12-31");
    await visitor.button("Create key").click();
    await visitor.field("I saved the API key").check();
    await visitor.button("Done").click();
    await visitor.page.getByText("active until Jan 1, 3000, 00:00").waitFor();
    await visitor.link("for a while").click();
    await visitor.button("Change limits").click();
    expect(await visitor.field("Last day").inputValue()).toBe("2999-12-31");
    await visitor.field("Last day").fill("");
    await visitor.button("Save").click();
    await visitor.page.getByText("active", { exact: true }).waitFor();
    await visitor.button("Revoke").click();
    await visitor.button("Revoke now").click();
    await visitor.page.getByText("revoked", { exact: true }).waitFor();
  });

  test("a limit is raised", async () => {
    await visitor.link("Keys").click();
    await visitor.link('=cmd("x")').click();
    await visitor.button("Change limits").click();
    await visitor.field("Dollars per day").fill("12.50");
    await visitor.field("Name").fill("sailor");
    await visitor.button("Save").click();
    await visitor.heading("sailor").waitFor();
    const me = await gateway.send("GET", "/v1/me", { bearer: key });
    expect(me.json.key).toMatchObject({ name: "sailor", daily_limit_usd: 12.5 });
  });

  test("after a rotation both keys work", async () => {
    await visitor.button("Rotate").click();
    await visitor.page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    await visitor.heading("Save the new key now").waitFor();
    replacement = (await visitor.page.locator("dialog output").textContent())!;
    await visitor.page.keyboard.press("Escape");
    expect(await visitor.heading("Save the new key now").isVisible()).toBe(true);
    await visitor.field("I saved the API key").check();
    await visitor.button("Done").click();
    expect(replacement).not.toBe(key);
    expect((await chat(key)).status).toBe(200);
    expect((await chat(replacement)).status).toBe(200);
  });

  test("a revoked key is refused at once", async () => {
    await visitor.button("Revoke").click();
    await visitor.button("Revoke now").click();
    await visitor.page.getByText("revoked", { exact: true }).waitFor();
    const refusal = await chat(replacement);
    expect([refusal.status, refusal.json.error.code]).toEqual([401, "invalid_api_key"]);
    expect((await chat(key)).status).toBe(200);
  });

  test("a webhook's secret is shown once, and replaced only after the page has asked", async () => {
    const save = async () => {
      await visitor.heading("Save the secret now").waitFor();
      const secret = await visitor.page.locator("dialog output").textContent();
      await visitor.field("I saved the Webhook secret").check();
      await visitor.button("Done").click();
      return secret;
    };
    const asOwner = { bearer: /or-rec-\w+/.exec(recoveryLink)![0] };
    await gateway.credit((await gateway.send("GET", "/v1/me", asOwner)).json.balance_id, 1);
    await visitor.link("Webhooks").click();
    await visitor.button("New webhook").click();
    await visitor.field("Address").fill("https://hooks.example.com/events");
    await visitor.button("Create").click();
    const first = await save();
    await visitor.button(/^Replace the secret/).click();
    await visitor.button("Keep it").click();
    await visitor.button(/^Replace the secret/).click();
    await visitor.button("Replace it now").click();
    expect(await save()).not.toBe(first);
    await visitor.button(/^Change/).click();
    await visitor.button("Delete").click();
    await visitor.heading("No webhooks yet").waitFor();
  });

  test("the recovery link opens the balance on another machine, leaves the address bar, and replaces a key at once", async () => {
    const elsewhere = await Visitor.arrive(gateway.url);
    await elsewhere.goto(recoveryLink.slice(gateway.url.length));
    await elsewhere.button("Open this balance").click();
    await elsewhere.heading("Overview").waitFor();
    expect(elsewhere.page.url()).not.toContain("recover");
    await elsewhere.link("Keys").click();
    await elsewhere.link("sailor").click();
    await elsewhere.page.getByText(/replaced, works until/).waitFor();
    await elsewhere.button("Revoke").click();
    await elsewhere.button("Revoke now").click();
    await elsewhere.page.getByText("revoked", { exact: true }).waitFor();
    expect((await chat(key)).status).toBe(401);
    await elsewhere.link("Keys").click();
    await elsewhere.button("New key").click();
    await elsewhere.field("Name").fill("recovered");
    await elsewhere.button("Create key").click();
    const fresh = (await elsewhere.page.locator("dialog output").textContent())!;
    expect((await chat(fresh)).status).toBe(200);
    await elsewhere.field("I saved the API key").check();
    await elsewhere.button("Done").click();
    await elsewhere.link("recovered").click();
    await elsewhere.button("Rotate").click();
    await elsewhere.field(/stops now/).check();
    await elsewhere.page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    await elsewhere.page.getByText("The old key has stopped working.").waitFor();
    expect((await chat(fresh)).status).toBe(401);
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { gate } from "../fakes/gate.ts";
import { type Made, type OpenGateway, open } from "../gateway/open.ts";
import { ADMIN } from "../process/gateway.ts";
import { browserMissing, endVisits, Visitor } from "./browser.ts";

describe.skipIf(browserMissing)("with an account", () => {
  let gateway: OpenGateway;
  let made: Made;
  let link = "";

  beforeAll(async () => {
    gateway = await open("");
    made = await gateway.key(0, { name: "first" });
    await gateway.send("POST", "/v1/keys", { bearer: made.recovery_secret, json: { name: "second" } });
  });
  afterEach(() => endVisits());
  afterAll(async () => {
    await gateway?.close();
  });

  /** The link in the last mail that the gateway sent. */
  function mailedLink(): string {
    const outbox = join(gateway.gateway.folder.path, "outbox");
    const mail = readFileSync(join(outbox, readdirSync(outbox).sort().at(-1)!), "utf8");
    return /#signin=\S+/.exec(mail)![0];
  }

  async function signedIn(): Promise<Visitor> {
    await gateway.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } });
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.goto(`/dashboard${mailedLink()}`);
    await visitor.button("Sign in here").click();
    return visitor;
  }

  test("the holder of a key claims the balance for a mail address", async () => {
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.recover(made.recovery_secret);
    await visitor.link("Account").click();
    await visitor.field("API key from set-up").fill(made.key);
    await visitor.field("Email").fill("kim@example.com");
    await visitor.button("Claim by email").click();
    await visitor.page.getByText(/^Claimed for kim@example.com/).waitFor();
    link = mailedLink();
  });

  test("the mailed link is used up by the reader's click and not by opening it; all keys are there", async () => {
    const scanner = await Visitor.arrive(gateway.url);
    await scanner.goto(`/dashboard${link}`);
    await scanner.page.getByText(`The balance ${made.balance_id} was claimed for this address`).waitFor();
    await scanner.page.getByText("As k***@example.com?").waitFor();
    const reader = await Visitor.arrive(gateway.url);
    await reader.goto(`/dashboard${link}`);
    await reader.button("Sign in and take the balance").click();
    await reader.heading("Overview").waitFor();
    expect(reader.page.url()).not.toContain("signin");
    // What was claimed is what is shown, next to the account's own.
    expect(await reader.field("Balance").inputValue()).toBe(made.balance_id);
    await reader.link("Credit").click();
    await reader.page.getByText(/its earlier recovery secret can take it back/).waitFor();
    await reader.link("Keys").click();
    await reader.link("first").waitFor();
    await reader.link("second").waitFor();
    const [cookie] = await reader.context.cookies();
    expect(cookie).toMatchObject({ name: "__Host-session", httpOnly: true, secure: true, sameSite: "Lax" });
    expect(await reader.page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);

    await reader.page.reload();
    await reader.link("first").click();
    await reader.button("Rotate").click();
    await reader.page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
    await reader.page.getByText(/The old key works until/).waitFor();
    await reader.field("I saved the API key").check();
    await reader.button("Done").click();
    expect((await gateway.chat(made.key, { model: "sim/echo:free" })).status).toBe(200);

    await scanner.button("Sign in and take the balance").click();
    await scanner.page.getByRole("alert").waitFor();
  });

  test("a link that is pasted while the page still asks who is there is not forgotten", async () => {
    const visitor = await Visitor.arrive(gateway.url);
    const answered = gate();
    await visitor.page.route("**/v1/me", async (route) => {
      await answered.passed;
      await route.continue();
    });
    // The page may be loaded before its script asks: a link that is pasted by then is all that it finds.
    const asking = visitor.page.waitForRequest("**/v1/me");
    await visitor.goto("/dashboard");
    await asking;
    await gateway.send("POST", "/v1/auth/email", { json: { email: "kim@example.com" } });
    await visitor.goto(`/dashboard${mailedLink()}`);
    await visitor.button("Sign in here").waitFor();
    const response = visitor.page.waitForResponse("**/v1/me");
    answered.open();
    await response;
    await visitor.page.evaluate(
      () => new Promise((painted) => requestAnimationFrame(() => setTimeout(painted))),
    );
    expect(await visitor.button("Sign in here").count()).toBe(1);
  });

  test("a link is mailed on request, and signing out ends the session", async () => {
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.goto("/dashboard");
    await visitor.field("Email").fill("kim@example.com");
    await visitor.button("Email me a link").click();
    await visitor.page.getByText("A link is on its way to kim@example.com.").waitFor();
    await visitor.goto(`/dashboard${mailedLink()}`);
    await visitor.page.reload();
    await visitor.goto(`/dashboard${mailedLink()}`);
    await visitor.button("Sign in here").click();
    await visitor.link("Keys").click();
    await visitor.link("second").waitFor();
    // The page does not wait for the answer, and a reload would cut it off with the cookie's end in it.
    const ended = visitor.page.waitForResponse(/\/v1\/auth\/logout$/);
    await visitor.button("Sign out").click();
    await visitor.heading("Sign in").waitFor();
    await ended;
    await visitor.page.reload();
    await visitor.heading("Sign in").waitFor();
    expect(await visitor.context.cookies()).toEqual([]);
  });

  test("a session that ended elsewhere makes no key that nobody owns: its owner sees that, and can sign in again", async () => {
    const owner = await signedIn();
    await owner.link("Keys").click();
    await owner.button("New key").click();
    await owner.field("Name").fill("orphan");
    // As by signing out in another tab, or after thirty days: the browser has no cookie any more.
    await owner.context.clearCookies();
    await owner.button("Create key").click();
    await owner.page.getByText("Your session has ended. Sign in again to go on.").waitFor();
    await owner.heading("Sign in").waitFor();
    const { json } = await gateway.send("GET", "/admin/balances?limit=200", { bearer: ADMIN });
    // What the account claimed, and its own: none for the key.
    expect(json.data).toHaveLength(2);
  });

  test("a balance that was claimed for somebody is theirs once they say so, and can be looked at alone", async () => {
    const another = await gateway.key(0, { name: "third" });
    await gateway.send("POST", "/v1/me/claim", { bearer: another.key, json: { email: "kim@example.com" } });
    const owner = await signedIn();
    await owner.link("Review it").click();
    await owner.button("Confirm").click();
    await owner.field("Balance").selectOption(another.balance_id);
    await owner.link("Keys").click();
    await owner.link("third").waitFor();
    expect(await owner.page.getByRole("link", { name: "second" }).count()).toBe(0);
    await owner.field("Balance").selectOption("");
    await owner.link("second").waitFor();
    await owner.link("third").waitFor();
  });

  test("a wallet in the browser signs in", async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.page.exposeFunction("walletSigns", (raw: `0x${string}`) =>
      account.signMessage({ message: { raw } }),
    );
    await visitor.page.addInitScript((address) => {
      const answers: Record<string, unknown> = { eth_requestAccounts: [address], eth_chainId: "0x1" };
      const page = window as unknown as { walletSigns(raw: unknown): Promise<string>; ethereum: object };
      page.ethereum = {
        request: async ({ method, params }: { method: string; params?: unknown[] }) =>
          method === "personal_sign" ? page.walletSigns(params![0]) : answers[method],
      };
    }, account.address);
    await visitor.goto("/dashboard");
    await visitor.button("Use my wallet").click();
    await visitor.link("Account").click();
    await visitor.heading(new RegExp(account.address, "i")).waitFor();
  });
  test("a recovery link says whose balance it opens and who is here, and changes nothing without a click", async () => {
    const mine = await gateway.key(0);
    const strangers = await gateway.key(0);
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.recover(mine.recovery_secret);
    await visitor.heading("Overview").waitFor();
    await visitor.goto(`/dashboard#recover=${strangers.recovery_secret}`);
    await visitor.page.getByText(`It opens the balance ${strangers.balance_id}.`).waitFor();
    await visitor.page.getByText(`This tab shows ${mine.balance_id} now`).waitFor();
    expect(visitor.page.url()).not.toContain("recover");
    const kept = () => visitor.page.evaluate(() => sessionStorage.getItem("gateway-recovery"));
    expect(await kept()).toBe(mine.recovery_secret);
    await visitor.button("Not now").click();
    await visitor.heading("Overview").waitFor();
    await visitor.link("Account").click();
    await visitor.page.getByText(mine.balance_id).first().waitFor();
    await visitor.recover(strangers.recovery_secret);
    await visitor.link("Account").click();
    await visitor.page.getByText(strangers.balance_id).first().waitFor();
    expect(await kept()).toBe(strangers.recovery_secret);
    await visitor.goto(`/dashboard#recover=or-rec-${"1".repeat(44)}`);
    await visitor.page.getByText(/^No balance has the recovery secret in this link/).waitFor();
    expect(await visitor.button("Open this balance").count()).toBe(0);
  });

  test("an address that changes while the page is first drawn is not missed", async () => {
    const { recovery_secret } = await gateway.key(0);
    const visitor = await Visitor.arrive(gateway.url);
    await visitor.page.addInitScript(() => {
      // Effects wait for a frame: none comes, so they run late.
      window.requestAnimationFrame = () => 0;
      const watch = new MutationObserver(() => {
        if (document.querySelector('a[href="#/keys"]') === null) return;
        watch.disconnect();
        location.hash = "#/keys";
      });
      watch.observe(document, { childList: true, subtree: true });
    });
    await visitor.recover(recovery_secret);
    await visitor.heading("Keys").waitFor();
  });

  test("the recovery secret takes a claimed balance back, is replaced, and ends the balance", async () => {
    const { key, balance_id, recovery_secret } = await gateway.key(0);
    await gateway.send("POST", "/v1/me/claim", { bearer: key, json: { email: "thief@example.com" } });
    const token = mailedLink().slice("#signin=".length);
    await gateway.send("POST", "/v1/auth/email/verify", { json: { token } });
    const owner = await Visitor.arrive(gateway.url);
    await owner.recover(recovery_secret);
    await owner.link("Account").click();
    await owner.heading("thief@example.com").waitFor();
    await owner.button("Undo the claim").click();
    await owner.button("Take it back").click();
    await owner.heading("Claim this balance for an account").waitFor();
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).json.account).toBeNull();

    await owner.button("Replace the recovery secret").click();
    await owner.button("Replace it now").click();
    const link = (await owner.page.locator("dialog output").textContent())!;
    await owner.field("I saved the recovery link").check();
    await owner.button("Done").click();
    expect((await gateway.send("GET", "/v1/me", { bearer: recovery_secret })).status).toBe(401);
    // The page goes on with the new one.
    await owner.link("Keys").click();
    await owner.button("New key").waitFor();

    await owner.goto(link.slice(gateway.url.length));
    await owner.button("Open this balance").click();
    await owner.link("Account").click();
    await owner.button("Delete the balance").click();
    await owner.field("Id of the balance").fill(balance_id);
    await owner.button("Delete for good").click();
    await owner.heading("Sign in").waitFor();
    expect((await gateway.send("GET", "/v1/me", { bearer: key })).status).toBe(401);
  });

  test("an account's sessions are seen and ended, one or all, and the account is deleted", async () => {
    const email = "lee@example.com";
    const enter = async () => {
      await gateway.send("POST", "/v1/auth/email", { json: { email } });
      return mailedLink();
    };
    const verify = async () => {
      const json = { token: (await enter()).slice("#signin=".length) };
      return (await gateway.send("POST", "/v1/auth/email/verify", { json })).json.session;
    };
    const lost = await verify();
    const owner = await Visitor.arrive(gateway.url);
    await owner.goto(`/dashboard${await enter()}`);
    await owner.page.getByText("As l***@example.com?").waitFor();
    await owner.button("Sign in here").click();
    await owner.link("Account").click();
    await owner.page.getByText("this browser").waitFor();
    await owner.button("End").click();
    await owner.button("End it now").click();
    await owner.button("End").waitFor({ state: "detached" });
    expect((await gateway.send("GET", "/v1/me", { bearer: lost })).status).toBe(401);
    const other = await verify();
    await owner.button("Sign out everywhere").click();
    await owner.button("Sign out now").click();
    await owner.heading("Sign in").waitFor();
    expect((await gateway.send("GET", "/v1/me", { bearer: other })).status).toBe(401);

    await owner.goto(`/dashboard${await enter()}`);
    await owner.button("Sign in here").click();
    await owner.link("Account").click();
    await owner.button("Delete the account").click();
    const id = (await owner.page.locator("dialog .mono").textContent())!;
    await owner.field("Id of the account").fill(id);
    await owner.button("Delete for good").click();
    await owner.heading("Sign in").waitFor();
    const found = await gateway.admin(`/admin/accounts/${id}`);
    expect(found.json).toMatchObject({ email: null, deleted_at: expect.any(String) });
  });
});

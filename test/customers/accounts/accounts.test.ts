import { beforeEach, describe, expect, test } from "bun:test";
import { claimByEmail, settleClaim } from "../../../src/customers/accounts/claim.ts";
import type { AccountDeps } from "../../../src/customers/accounts/deps.ts";
import { type Email, readEmail } from "../../../src/customers/accounts/email.ts";
import type { Mail } from "../../../src/customers/accounts/mail.ts";
import { requestLink, type SignedIn, signInByLink } from "../../../src/customers/accounts/sign-in.ts";
import { walletMessage } from "../../../src/customers/accounts/wallet.ts";
import { SqlAccountStore } from "../../../src/store/customers/account-store.ts";
import { openDatabase } from "../../../src/store/database/sqlite.ts";
import { SqliteDatabase } from "../../../src/store/database/sqlite-database.ts";
import { DAY_MS } from "../../../src/units/clock.ts";
import { type Refusal, refused } from "../../../src/units/errors/refusal.ts";
import type { BalanceId } from "../../../src/units/id.ts";
import { hashSecret } from "../../../src/units/secret-hash.ts";
import { ManualClock } from "../../fakes/clock.ts";
import { Random } from "../../sim/random.ts";

const KIM = readEmail("kim@example.com")!;

let clock: ManualClock;
let db: ReturnType<typeof openDatabase>;
let mails: Mail[];
let forgotten: BalanceId[];
let deps: AccountDeps;
beforeEach(() => {
  clock = new ManualClock();
  db = openDatabase(":memory:");
  mails = [];
  forgotten = [];
  deps = {
    store: new SqlAccountStore(new SqliteDatabase(db), clock),
    clock,
    random: new Random(7).bytes,
    contracts: { check: async () => "unknown" },
    mailer: { post: (mail) => mails.push(mail) },
    links: () => ({
      baseUrl: "http://g.test",
      dashboardUrl: "http://g.test/dashboard",
      contact: "https://g.test/help",
    }),
    keyring: { forget: (_, balances) => void forgotten.push(...balances) },
  };
});

const lastToken = () => /#signin=(\S+)/.exec(mails.at(-1)!.text)![1]!;
async function signIn(email: Email = KIM): Promise<SignedIn> {
  await requestLink(deps, email);
  const made = await signInByLink(deps, lastToken());
  if (refused(made)) throw new Error(made.message);
  return made;
}
function balance(name: string): BalanceId {
  db.run("INSERT INTO balances (id, created_at, setup_key) VALUES (?, ?, 'key_1')", [
    `bal_${name}`,
    clock.now(),
  ]);
  return `bal_${name}`;
}
/** With the key alone. */
const by = (id: BalanceId) => ({ balance: id, secret: null });
const rows = (table: string): number =>
  db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()!.n;

test("what strangers cause is deleted when it has expired", async () => {
  for (let turn = 0; turn < 3; turn++) {
    await requestLink(deps, readEmail(`a${turn}@example.com`)!);
    await walletMessage(deps, `0x${"ab".repeat(20)}`, 1);
  }
  await signIn();
  expect([rows("sign_in_links"), rows("wallet_messages"), rows("sessions")]).toEqual([3, 3, 1]);
  clock.advance(30 * DAY_MS);
  await signIn();
  await walletMessage(deps, `0x${"ab".repeat(20)}`, 1);
  expect([rows("sign_in_links"), rows("wallet_messages"), rows("sessions")]).toEqual([0, 1, 1]);
});

test("an account has fifty sessions; a further one ends the oldest", async () => {
  const sessions: string[] = [];
  for (let turn = 0; turn < 51; turn++) {
    clock.advance(1_000);
    sessions.push((await signIn()).session);
  }
  expect(rows("sessions")).toBe(50);
  expect(await deps.store.session(hashSecret(sessions[0]!))).toBeNull();
  expect(await deps.store.session(hashSecret(sessions[1]!))).not.toBeNull();
});

test("asking for a link reads and writes nothing about accounts", async () => {
  await signIn();
  const seen: object[] = [];
  const { store } = deps;
  deps = {
    ...deps,
    store: {
      ...store,
      change: (about, decide) => {
        seen.push(about);
        return store.change(about, decide);
      },
    } as AccountDeps["store"],
  };
  await requestLink(deps, KIM);
  await requestLink(deps, readEmail("nobody@example.com")!);
  expect(seen).toEqual([{ mailbox: KIM }, { mailbox: "nobody@example.com" }] as object[]);
  expect(rows("accounts")).toBe(1);
});

test("when strangers asked for too many, only who has signed in before gets a link", async () => {
  await signIn();
  const sent = mails.length;
  const stranger = readEmail("nobody@example.com")!;
  // A claim makes an account that nobody has signed in to.
  await claimByEmail(deps, by(balance("a")), stranger);
  expect(mails.length).toBe(sent + 1);
  await requestLink(deps, stranger, "accounts");
  expect(mails.length).toBe(sent + 1);
  await requestLink(deps, KIM, "accounts");
  expect(mails.at(-1)!.to).toBe(KIM);
});

describe("a claim", () => {
  test("makes the keyring read its balance again once it is confirmed, not before", async () => {
    const id = balance("a");
    await claimByEmail(deps, by(id), KIM);
    expect(forgotten).toEqual([]);
    await signInByLink(deps, lastToken());
    expect(forgotten).toEqual([id]);
  });

  test("is confirmed by its own link even where the address has an account", async () => {
    const { account } = await signIn();
    const id = balance("a");
    await claimByEmail(deps, by(id), KIM);
    await signInByLink(deps, lastToken());
    expect((await deps.store.balanceRecord(id))!).toMatchObject({
      owner: { account: { id: account.id } },
      claim: null,
    });
  });

  test("is not confirmed by the link of another claim", async () => {
    await signIn();
    const [one, other] = [balance("a"), balance("b")];
    await claimByEmail(deps, by(one), KIM);
    await claimByEmail(deps, by(other), KIM);
    await signInByLink(deps, lastToken());
    expect((await deps.store.balanceRecord(one))!.claim).not.toBeNull();
    expect((await deps.store.balanceRecord(other))!.claim).toBeNull();
  });

  test("by a link that outlived its claim takes nothing over", async () => {
    const { account } = await signIn();
    const id = balance("a");
    await claimByEmail(deps, by(id), KIM);
    const token = lastToken();
    await settleClaim(deps, account.id, id, "decline");
    expect(refused(await claimByEmail(deps, by(id), readEmail("lee@example.com")!))).toBe(false);
    expect(refused(await signInByLink(deps, token))).toBe(false);
    expect((await deps.store.balanceRecord(id))!.claim).not.toBeNull();
    expect((await deps.store.balanceRecord(id))!.claimant!.email).toBe("lee@example.com" as Email);
  });

  test("waits while the account is suspended, and is refused where its balance is", async () => {
    const { account } = await signIn();
    const id = balance("a");
    await claimByEmail(deps, by(id), KIM);
    db.run("UPDATE accounts SET suspended = 'sanctions' WHERE id = ?", [account.id]);
    expect(await settleClaim(deps, account.id, id, "confirm")).toMatchObject({ code: "account_suspended" });
    await signInByLink(deps, lastToken());
    expect((await deps.store.balanceRecord(id))!.claim).not.toBeNull();
    db.run("UPDATE balances SET suspended = 'chargeback' WHERE id = ?", [balance("b")]);
    const refusal = await claimByEmail(deps, by("bal_b"), KIM);
    expect(refusal).toMatchObject({ code: "account_suspended" });
    expect((refusal as Refusal).message).toContain("chargeback");
    expect((refusal as Refusal).message).toContain("(https://g.test/help)");
  });

  test("is among the newest hundred that a session is shown", async () => {
    const { session } = await signIn();
    for (let turn = 0; turn < 105; turn++) {
      clock.advance(60_000);
      await claimByEmail(deps, by(balance(String(turn))), KIM);
    }
    const { claims } = (await deps.store.session(hashSecret(session)))!;
    expect(claims.length).toBe(100);
    expect(claims[0]!.balanceId).toBe("bal_104");
  });

  test("is mailed however many sign-in mails are out, and refused where twenty claims are", async () => {
    for (let turn = 0; turn < 7; turn++) await requestLink(deps, KIM);
    expect(mails.length).toBe(5);
    for (let turn = 0; turn < 20; turn++) await claimByEmail(deps, by(balance(String(turn))), KIM);
    expect(mails.length).toBe(25);
    const refusal = (await claimByEmail(deps, by(balance("a")), KIM)) as Refusal;
    expect(refusal).toMatchObject({ code: "rate_limited", details: { retryAfterS: 900 } });
    expect((await deps.store.balanceRecord("bal_a"))!.claim).toBeNull();
    clock.advance(15 * 60_000);
    expect(refused(await claimByEmail(deps, by("bal_a"), KIM))).toBe(false);
  });
});

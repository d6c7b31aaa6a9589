import { claimByEmail, settleClaim } from "../../../src/customers/accounts/claim.ts";
import { deleteAccount } from "../../../src/customers/accounts/deletion.ts";
import type { AccountDeps } from "../../../src/customers/accounts/deps.ts";
import { type Email, readEmail } from "../../../src/customers/accounts/email.ts";
import type { Mail } from "../../../src/customers/accounts/mail.ts";
import { CLAIM_DAYS, ownership, UNDO_DAYS } from "../../../src/customers/accounts/ownership.ts";
import { replaceRecovery } from "../../../src/customers/accounts/recovery.ts";
import { requestLink, signInByLink } from "../../../src/customers/accounts/sign-in.ts";
import { detach, takeBack } from "../../../src/customers/accounts/undo.ts";
import { DAY_MS } from "../../../src/units/clock.ts";
import { refused } from "../../../src/units/errors/refusal.ts";
import type { AccountId, BalanceId } from "../../../src/units/id.ts";
import { hashSecret, type SecretHash } from "../../../src/units/secret-hash.ts";
import { ManualClock } from "../../fakes/clock.ts";
import { Random } from "../../sim/random.ts";

const EMAILS = ["kim@example.com", "lee@example.com"].map((text) => readEmail(text)!);

/** Makes a store, and balances in it as set-up does. */
export interface WalkedStore {
  readonly store: AccountDeps["store"];
  addBalance(id: BalanceId, recovery: SecretHash): Promise<void>;
}

/** What a balance is, kept by an accountant of its own who knows nothing of the store. */
interface Known {
  readonly id: BalanceId;
  account: AccountId | null;
  claimedAt: number;
  offer: { readonly to: AccountId; readonly at: number } | null;
  recovery: SecretHash | null;
  undo: SecretHash | null;
  reclaimed: boolean;
  /** Every secret that it ever had. */
  readonly secrets: SecretHash[];
}

/**
 * Claims, words on them, undoings, detachments, new secrets, deletions and days in random order. After each
 * step, what it came to and whose every balance is has to be what the accountant says. Returns how often each
 * kind of step succeeded.
 */
export async function walk(seed: number, steps: number, make: (clock: ManualClock) => Promise<WalkedStore>) {
  const random = new Random(seed);
  const clock = new ManualClock();
  const { store, addBalance } = await make(clock);
  const mails: Mail[] = [];
  const deps: AccountDeps = {
    store,
    clock,
    random: random.bytes,
    contracts: { check: async () => "unknown" },
    mailer: { post: (mail) => mails.push(mail) },
    links: () => ({ baseUrl: "http://g.test", dashboardUrl: "http://g.test/dashboard", contact: null }),
    keyring: { forget: () => {} },
  };
  const newSecret = () => hashSecret(String(random.next()));
  const people = new Map<Email, AccountId>();
  const balances: Known[] = [];
  for (let index = 0; index < 3; index++) {
    const [id, recovery] = [`bal_${seed}_${index}` as BalanceId, newSecret()];
    await addBalance(id, recovery);
    balances.push({
      id,
      account: null,
      claimedAt: 0,
      offer: null,
      recovery,
      undo: null,
      reclaimed: false,
      secrets: [recovery],
    });
  }
  const enter = async (email: Email) => {
    await requestLink(deps, email);
    const token = /#signin=(\S+)/.exec(mails.at(-1)!.text)![1]!;
    const made = await signInByLink(deps, token);
    if (refused(made)) throw new Error(made.message);
    people.set(email, made.account.id);
  };
  for (const email of EMAILS) await enter(email);

  const waits = ({ offer }: Known) => offer !== null && clock.now() < offer.at + CLAIM_DAYS * DAY_MS;
  const undoable = ({ account, claimedAt }: Known) =>
    account !== null && clock.now() < claimedAt + UNDO_DAYS * DAY_MS;
  const free = (balance: Known) => {
    Object.assign(balance, {
      account: null,
      offer: null,
      recovery: balance.undo ?? balance.recovery,
      undo: null,
      reclaimed: true,
    });
  };
  const took: Record<string, number> = {};

  for (let step = 0; step < steps; step++) {
    clock.advance(1 + random.below(2 * DAY_MS));
    const balance = random.pick(balances);
    const email = random.pick(EMAILS);
    const account = people.get(email)!;
    const { id } = balance;
    const kind = random.pick(KINDS);
    let expected = false;
    let done = false;
    switch (kind) {
      case "claim": {
        const secret = random.pick([null, balance.recovery, random.pick(balance.secrets)]);
        const isWord = secret === null ? !balance.reclaimed : secret === balance.recovery;
        expected = balance.account === null && !waits(balance) && balance.recovery !== null && isWord;
        if (balance.recovery === null) break;
        done = !refused(await claimByEmail(deps, { balance: id, secret }, email));
        if (expected) balance.offer = { to: account, at: clock.now() };
        break;
      }
      case "confirm": {
        const again = undoable(balance) && balance.account === account;
        const takes = balance.account === null && waits(balance) && balance.offer!.to === account;
        expected = again || takes;
        done = !refused(await settleClaim(deps, account, id, "confirm"));
        if (takes) Object.assign(balance, { account, claimedAt: clock.now(), offer: null });
        break;
      }
      case "decline":
        expected = balance.account === null && waits(balance) && balance.offer!.to === account;
        done = !refused(await settleClaim(deps, account, id, "decline"));
        if (expected) balance.offer = null;
        break;
      case "take back": {
        const secret = random.pick(balance.secrets);
        const withdraws = secret === balance.recovery && balance.account === null && waits(balance);
        const undoes = undoable(balance) && secret === (balance.undo ?? balance.recovery);
        expected = withdraws || undoes;
        const outcome = await takeBack(deps, secret, false);
        done = outcome !== null && !refused(outcome);
        if (expected) free(balance);
        break;
      }
      case "detach":
        expected =
          balance.account === account ||
          (balance.account === null && waits(balance) && balance.offer!.to === account);
        done = !refused(await detach(deps, account, id, false));
        if (expected) free(balance);
        break;
      case "replace by session": {
        const hash = newSecret();
        expected = balance.account === account;
        done = (await replaceRecovery(deps, { balance: id, account }, hash)) !== null;
        if (!expected) break;
        Object.assign(balance, { undo: balance.undo ?? balance.recovery, recovery: hash });
        balance.secrets.push(hash);
        break;
      }
      case "replace by itself": {
        const [hash, secret] = [newSecret(), random.pick(balance.secrets)];
        expected = secret === balance.recovery;
        done = (await replaceRecovery(deps, { recovery: secret }, hash)) !== null;
        if (!expected) break;
        balance.recovery = hash;
        balance.secrets.push(hash);
        break;
      }
      case "delete": {
        if (random.below(4) > 0) break;
        expected = true;
        done = !refused(await deleteAccount(deps, account));
        for (const one of balances) {
          if (one.offer?.to === account) one.offer = null;
          if (one.account !== account) continue;
          if (undoable(one)) free(one);
          else Object.assign(one, { recovery: null, undo: null });
        }
        await enter(email);
        break;
      }
    }
    if (done !== expected) throw new Error(`seed ${seed}, step ${step}: ${kind} of ${id} came to ${done}`);
    if (done) took[kind] = (took[kind] ?? 0) + 1;
    await compare(`seed ${seed}, step ${step}, after ${kind}`);
  }
  return took;

  async function compare(when: string): Promise<void> {
    for (const balance of balances) {
      const held = (await store.balanceRecord(balance.id))!;
      const at = ownership(held, clock.now());
      const known =
        balance.account !== null
          ? undoable(balance)
            ? "claimed"
            : "kept"
          : waits(balance)
            ? "offered"
            : balance.reclaimed
              ? "reclaimed"
              : "nobody's";
      if (at.state !== known || (held.owner?.account.id ?? null) !== balance.account) {
        throw new Error(`${when}: ${balance.id} is ${at.state} of ${held.owner?.account.id}, not ${known}`);
      }
    }
    for (const { id, recovery, undo } of balances) {
      const held = (await store.balanceRecord(id))!;
      if (held.recovery !== recovery || held.undo !== (undo ?? recovery)) {
        throw new Error(`${when}: ${id} is not opened, or taken back, by the secret that should`);
      }
    }
    const named = await store.accounts([...people.values(), "acct_none" as AccountId]);
    const listed = named.map(({ id, email }) => `${email} ${id}`).sort();
    const met = [...people].map(([email, id]) => `${email} ${id}`).sort();
    if (listed.join() !== met.join()) throw new Error(`${when}: the accounts are ${listed}, not ${met}`);
    for (const account of people.values()) {
      const { balances: held } = (await store.accountBalances({ account }))!;
      const known = balances.filter((one) => one.account === account).map(({ id }) => id);
      // The first is the account's own, whatever comes and goes.
      const [own, ...claimed] = held;
      if (own === undefined || known.includes(own) || claimed.sort().join() !== known.sort().join()) {
        throw new Error(`${when}: ${account} holds ${held}, not its own and ${known}`);
      }
    }
  }
}

const KINDS = [
  "claim",
  "claim",
  "confirm",
  "confirm",
  "decline",
  "take back",
  "take back",
  "detach",
  "replace by session",
  "replace by itself",
  "delete",
] as const;

/** What a long enough walk has done. */
export const ALL_KINDS = [...new Set<string>(KINDS)].sort();

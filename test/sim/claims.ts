import type { Database, Statement } from "bun:sqlite";
import {
  claimByEmail,
  claimByWallet,
  settleClaim,
  whyNoClaimant,
} from "../../src/customers/accounts/claim.ts";
import { closeBalance, deleteAccount } from "../../src/customers/accounts/deletion.ts";
import { UNDO_DAYS } from "../../src/customers/accounts/ownership.ts";
import { replaceRecovery } from "../../src/customers/accounts/recovery.ts";
import { detach, takeBack } from "../../src/customers/accounts/undo.ts";
import { createKey, setUp } from "../../src/customers/keys/creation.ts";
import type { Actor } from "../../src/customers/keys/root.ts";
import { revise, revoke, rotate } from "../../src/customers/keys/rotation.ts";
import { revisedRun } from "../../src/customers/keys/run.ts";
import { newRecoverySecret } from "../../src/customers/keys/secret.ts";
import { DAY_MS, epochMs, pause } from "../../src/units/clock.ts";
import { refused } from "../../src/units/errors/refusal.ts";
import type { BalanceId, KeyId } from "../../src/units/id.ts";
import { hashSecret } from "../../src/units/secret-hash.ts";
import { ClaimAuditor, type Credential, type Deed, isOfClaim, type Person } from "./claim-auditor.ts";
import { EMAILS, People } from "./claim-people.ts";
import { type Process, Processes } from "./claim-processes.ts";
import type { VirtualClock } from "./clock.ts";
import { emptyDatabase } from "./database.ts";
import { CLAIM_MUTANTS } from "./mutants/claims.ts";
import type { Random } from "./random.ts";
import { scenario } from "./scenario.ts";
import { check, type Player, promisesSettled, type World } from "./world.ts";

const COUNTS = [
  "claimed",
  "undone",
  "detached",
  "deleted",
  "made",
  "rotated",
  "revised",
  "runs revised",
  "revoked",
  "replaced",
  "spent",
  "turned away",
  "crashes",
  "lost",
] as const;

/**
 * An owner, a thief who has the key from set-up, and the operator do whatever they can with every credential that they
 * hold, whether it still works or not: at once, in any order, over weeks, at one process or at two, which end at any
 * moment. The auditor knows who was given what. In the end the owner takes the balance back, and has all of it.
 */
export const CLAIMS = scenario({
  options: { steps: 24 },
  seeds: 500,
  // The rarest of its faults needs two claims of one balance.
  mutants: { rules: CLAIM_MUTANTS, options: ["--steps", "60"], seeds: 600 },
  counts: COUNTS,
  steps: ({ steps }) => steps,
  settled: promisesSettled,
  fill: (world) => void world.joins(new OwnerAndThief(world)),
  kept: "Nothing of a claim spent, read or changed anything after it was answered to be taken back, and the owner was never locked out.",
});

const RUN = "job";
/** The run that they change lasts as long as the simulation. */
const FAR = epochMs(Date.UTC(2100, 0, 1));
/** Longer than anything takes that a process asked of its keeper before it ended. */
const LONG_MS = 1_000;

class OwnerAndThief implements Player {
  private readonly db = emptied();
  private readonly random: Random;
  private readonly time: VirtualClock;
  private readonly auditor: ClaimAuditor;
  private readonly people: People;
  private readonly processes: Processes;
  /** The owner's, which derives from set-up. */
  private secret!: Credential;
  /** An account that had kept the balance for a week has deleted itself. */
  private isLost = false;
  private isOver = false;
  /**
   * The owner claims with the secret, replaces it, or somebody takes the balance back: one after another, because nobody
   * could tell which of two came last.
   */
  private busy: Process | null = null;
  private freeAtMs = 0;
  /** The first key of each chain of rotations. */
  private readonly chains = new Map<string, string>();
  /** Chains of which somebody has asked to rotate or to revoke a key. */
  private readonly touched = new Set<string>();
  private mayRevokeAll = false;
  private mayBeRevokedBefore = -1;
  /** Keys that are being changed. */
  private readonly revising = new Map<string, Process>();

  constructor(private readonly world: World<(typeof COUNTS)[number]>) {
    const { random, time } = world;
    this.random = random;
    this.time = time;
    this.auditor = world.judgedBy(new ClaimAuditor(this.db, time));
    this.people = new People(random, this.auditor);
    this.processes = new Processes(this.db, this.time, random, random.chance(0.5) ? 1 : 2, (mail) =>
      this.people.post(mail.to, mail.text),
    );
  }

  close(): void {
    for (const one of this.processes.all) one.end();
  }

  async begin(): Promise<void> {
    // Loaded in the middle of a run, it would take as long as it takes.
    await import("viem/utils");
    await this.done((process) => this.setUp(process));
  }

  async act(): Promise<void> {
    const { random } = this;
    if (this.isLost) return;
    this.does(random.chance(0.35) ? "owner" : "thief");
    if (random.chance(0.02)) this.crash();
    await this.world.pass(random.chance(0.05) ? random.below(3 * DAY_MS) : random.below(30));
  }

  async end(): Promise<void> {
    await this.world.pass(LONG_MS);
    if (this.isLost) this.world.counts.lost += 1;
    else await this.takeAllBack();
  }

  private async setUp(process: Process): Promise<void> {
    const made = await setUp(process.keys, {});
    if (refused(made)) throw new Error(made.message);
    const { key, secret, recovery } = made;
    this.auditor.balance = key.balanceId;
    const run = {
      name: RUN,
      cap: null,
      calls: null,
      startedAt: FAR,
      startedBy: key.id,
      usedAt: FAR,
      revision: 0,
    };
    await process.keys.store.changeRun(key.balanceId, RUN, 1, () => {
      return { run, isWritten: true, hasNewLimits: false, ends: null };
    });
    this.secret = this.people.give({ kind: "recovery secret", secret: recovery, holder: "owner" });
    for (const holder of ["owner", "thief"] as const) {
      this.people.give({ kind: "key", secret, holder, id: key.id });
      for (const byWallet of [true, false]) await this.people.signIn(process, holder, byWallet);
    }
    if (this.random.chance(0.7)) await this.claimBy(process, this.people.pick("thief", ["key"])!, null);
  }

  private does(person: Person): void {
    const { random } = this;
    const dice = random.next();
    const any = () => this.people.pick(person, ["key", "recovery secret", "session"]);
    const owners = () => this.people.pick(person, ["recovery secret", "session"]);
    if (dice < 0.04) this.start((process) => this.people.signIn(process, person));
    else if (dice < 0.14) this.claim(person);
    else if (dice < 0.2) this.start((process) => this.confirm(process, person));
    else if (dice < 0.34) this.with(this.people.pick(person, ["key"]), (...on) => this.spend(...on));
    else if (dice < 0.38) this.sweep();
    else if (dice < 0.5) this.with(owners(), (...on) => this.make(...on));
    else if (dice < 0.62) this.with(any(), (...on) => this.rotate(...on));
    else if (dice < 0.66) this.with(owners(), (...on) => this.revise(...on));
    else if (dice < 0.7) this.with(owners(), (...on) => this.reviseRun(...on));
    else if (dice < 0.76) this.with(any(), (...on) => this.revoke(...on));
    else if (dice < 0.88) this.replace(owners());
    else if (dice < 0.91)
      this.with(this.people.pick(person, ["recovery secret"]), (...on) => this.endAll(...on));
    else if (dice < 0.97) this.takeBack();
    else if (random.chance(0.2)) this.alone((process) => this.delete(process));
  }

  /** Mostly while a thief is at it. */
  private takeBack(): void {
    const { random } = this;
    const revokeKeys = random.chance(0.3);
    const isUndo = random.chance(0.75);
    this.alone(async (process) => {
      await (isUndo ? this.undo(process, revokeKeys) : this.detach(process, revokeKeys));
      const key = this.people.pick("owner", ["key"]);
      if (key !== undefined && random.chance(0.4)) await this.claimWithSecret(process, key);
    });
    for (let more = random.below(8); more > 0; more--) {
      const by = this.people.pick("thief", ["recovery secret", "session"]);
      const work = random.pick(["make", "rotate", "revise", "reviseRun", "revoke", "endAll"] as const);
      this.with(by, (...on) => this[work](...on));
    }
  }

  /** Many keys are tried, soon: a keyring that has read one of them again knows what it shares with the others. */
  private sweep(): void {
    if (this.isOver) return;
    for (const one of this.keys())
      if (this.random.chance(0.6))
        this.with(one, async (process) => {
          await pause(process.clock, this.random.below(100));
          await this.spend(process, one);
        });
  }

  /** Something that is asked of one of the processes while others are under way. */
  private start(work: (process: Process) => Promise<unknown>): void {
    const done = work(this.random.pick(this.processes.all));
    this.world.spawn(
      done.catch((error: Error) => {
        // Others changed the same all the time.
        if (!/kept changing while|others changed the same/.test(error.message)) throw error;
      }),
    );
  }

  private with(by: Credential | undefined, work: (process: Process, by: Credential) => Promise<void>): void {
    if (by !== undefined) this.start((process) => work(process, by));
  }

  private alone(work: (process: Process) => Promise<void>): void {
    if (this.busy !== null || this.time.elapsedMs() < this.freeAtMs) return;
    this.start(async (process) => {
      this.busy = process;
      try {
        await work(process);
      } finally {
        if (this.busy === process) this.busy = null;
      }
    });
  }

  /** The owner would not know of a secret that was replaced in this moment, so then nothing ends. */
  private crash(): void {
    if (this.busy !== null && this.random.chance(0.5)) return;
    if (this.isReplacing) return;
    const before = [...this.processes.all];
    this.processes.crash();
    const gone = before.find((one) => !this.processes.all.includes(one))!;
    if (this.busy === gone) {
      this.busy = null;
      this.freeAtMs = this.time.elapsedMs() + LONG_MS;
    }
    for (const [key, process] of this.revising) if (process === gone) this.revising.delete(key);
    this.world.counts.crashes += 1;
  }

  private isReplacing = false;

  private get balance(): BalanceId {
    return this.auditor.balance!;
  }

  /** As the endpoints let a credential in; null where it opens nothing. */
  private async letIn({ keys, accounts, clock }: Process, deed: Deed): Promise<Actor | null> {
    const { kind, secret } = deed.by;
    const hash = hashSecret(secret);
    let found: Actor | null = null;
    if (kind === "key") {
      if ((await keys.keyring.identify(secret, clock.now())) !== null) found = { by: "key" };
    } else if (kind === "recovery secret") {
      if ((await keys.store.balanceByRecovery(hash)) !== null) found = { by: "recovery", secret: hash };
    } else {
      const session = await accounts.store.session(hash);
      const isOpen = session !== null && session.expiresAt > clock.now();
      if (isOpen && session.balances.includes(this.balance))
        found = { by: "session", account: session.account.id };
    }
    if (found === null) this.world.counts["turned away"] += 1;
    else this.auditor.letIn(deed);
    return found;
  }

  private claim(person: Person): void {
    const key = this.people.pick(person, ["key"]);
    const known = this.people.pick(person, ["recovery secret"]);
    if (key === undefined) return;
    const second = known === undefined || this.random.chance(0.5) ? null : known;
    if (second === null || isOfClaim(second)) this.start((process) => this.claimBy(process, key, second));
    else this.alone((process) => this.claimWithSecret(process, key));
  }

  /** The owner's right. */
  private async claimWithSecret(process: Process, key: Credential): Promise<void> {
    this.auditor.lets([...this.people.ownAccounts]);
    await this.claimBy(process, key, this.secret);
  }

  private async claimBy(process: Process, key: Credential, second: Credential | null): Promise<void> {
    const { keys, accounts, clock } = process;
    const { holder } = key;
    const isLate = this.auditor.wasTakenBack;
    const secret = second === null ? null : hashSecret(second.secret);
    const claimant = { balance: this.balance, secret };
    const signed = this.random.chance(0.6) ? await this.people.signed(process, holder) : null;
    const found = await keys.keyring.identify(key.secret, clock.now());
    if (found === null) return;
    if (secret === null && whyNoClaimant(found.key.rotationId, found.balance.setUpKey) !== null) return;
    const claimed =
      signed === null
        ? await claimByEmail(accounts, claimant, EMAILS[holder])
        : await claimByWallet(accounts, claimant, signed);
    if (refused(claimed)) return;
    const isOwners = second !== null && !isOfClaim(second);
    check(!isLate || isOwners, `${key.name} claims what was taken back`);
    this.world.counts.claimed += 1;
    this.sweep();
    if (signed === null && this.random.chance(0.7)) await this.people.useLink(process, holder);
  }

  private async confirm({ accounts }: Process, person: Person): Promise<void> {
    const session = this.people.pick(person, ["session"]);
    if (session === undefined) return;
    const word = this.random.chance(0.8) ? "confirm" : "decline";
    await settleClaim(accounts, session.account!, this.balance, word);
  }

  /** Takes something for a request, and then for its stream as that grows. */
  private async spend({ keys: { keyring }, clock }: Process, by: Credential): Promise<void> {
    const deed = this.auditor.deed("spending", by);
    const found = await keyring.identify(by.secret, clock.now());
    if (found === null) return;
    this.auditor.letIn(deed);
    const pieces = this.random.below(4);
    for (let piece = 0; piece <= pieces; piece++) {
      await pause(clock, this.random.below(piece === 0 ? 20 : 200));
      const current = keyring.current(found.key, clock.now());
      if (current === null) return;
      // Undefined while it is read.
      if (current === undefined) continue;
      this.auditor.spends(by);
      this.world.counts.spent += 1;
    }
  }

  private async make(process: Process, by: Credential): Promise<void> {
    const deed = this.auditor.deed("a key made", by);
    const actor = await this.letIn(process, deed);
    if (actor === null) return;
    const { balance } = (await process.keys.store.balanceWithBudgets(this.balance))!;
    const made = await createKey(process.keys, balance, {}, actor);
    if (refused(made)) return;
    this.given(deed, made);
    this.world.counts.made += 1;
  }

  private async rotate(process: Process, by: Credential): Promise<void> {
    const deed = this.auditor.deed("a rotation", by);
    const id = this.target(by);
    this.touched.add(this.chainOf(id));
    const actor = await this.letIn(process, deed);
    if (actor === null) return;
    const made = await rotate(process.keys, { id, balanceId: this.balance }, actor);
    if (refused(made)) return;
    this.auditor.changed(deed, made.old.id, ({ state }) => state !== "active");
    this.chains.set(made.key.id, this.chainOf(id));
    this.given(deed, made);
    if (actor.by === "recovery") this.ended(made.old.id);
    this.world.counts.rotated += 1;
  }

  private given(deed: Deed, { key: { id }, secret }: { key: { id: string }; secret: string }): void {
    this.auditor.changed(deed, id, () => true);
    const { by, at } = deed;
    this.people.give({ kind: "key", secret, holder: by.holder, id, by, at });
  }

  private chainOf = (id: string): string => this.chains.get(id) ?? id;

  private keys = (): Credential[] => this.people.held.filter(({ kind }) => kind === "key");

  /** A key acts on itself, an owner on any. */
  private target(by: Credential): KeyId {
    const keys = this.keys();
    return (by.kind === "key" ? by.id : this.random.pick(keys).id) as KeyId;
  }

  private ended(id: string): void {
    for (const one of this.people.held) if (one.id === id) this.auditor.ends(one);
  }

  private async revise(process: Process, by: Credential): Promise<void> {
    const deed = this.auditor.deed("a new name", by);
    const id = this.target(by);
    if (this.revising.has(id)) return;
    this.revising.set(id, process);
    try {
      const actor = await this.letIn(process, deed);
      if (actor === null) return;
      const key = await revise(process.keys, id, { name: deed.name }, actor);
      if (refused(key)) return;
      this.auditor.changed(deed, id, ({ name }) => name === deed.name);
      this.world.counts.revised += 1;
    } finally {
      if (this.revising.get(id) === process) this.revising.delete(id);
    }
  }

  private async reviseRun(process: Process, by: Credential): Promise<void> {
    const deed = this.auditor.deed("a run's limits", by);
    const actor = await this.letIn(process, deed);
    if (actor === null) return;
    const change = { calls: this.random.below(100) };
    const decide = revisedRun(RUN, process.clock.now(), change, actor);
    const run = await process.keys.store.reviseRun(this.balance, RUN, decide);
    if (refused(run)) return;
    this.auditor.changedRun(deed, run.revision);
    this.world.counts["runs revised"] += 1;
  }

  private async revoke(process: Process, by: Credential): Promise<void> {
    const deed = this.auditor.deed("a revocation", by);
    const id = this.target(by);
    this.touched.add(this.chainOf(id));
    const actor = await this.letIn(process, deed);
    if (actor === null || refused(await revoke(process.keys, id, actor))) return;
    this.auditor.changed(deed, id, ({ state }) => state === "revoked");
    this.ended(id);
    this.world.counts.revoked += 1;
  }

  private replace(by: Credential | undefined): void {
    if (by === undefined) return;
    if (isOfClaim(by)) {
      this.start((process) => this.replaceBy(process, by));
      return;
    }
    this.alone(async (process) => {
      this.isReplacing = true;
      const made = await this.replaceBy(process, by).finally(() => {
        this.isReplacing = false;
      });
      if (made === null) return;
      check(by === this.secret, `${by.name} was replaced before`);
      this.secret = made;
    });
  }

  private async replaceBy(process: Process, by: Credential): Promise<Credential | null> {
    const deed = this.auditor.deed("a new secret", by);
    const actor = await this.letIn(process, deed);
    if (actor === null) return null;
    const secret = newRecoverySecret(this.random.bytes);
    const who =
      actor.by === "session"
        ? { balance: this.balance, account: actor.account }
        : { recovery: hashSecret(by.secret) };
    const replaced = await replaceRecovery(process.accounts, who, hashSecret(secret));
    if (replaced === null || refused(replaced)) return null;
    if (actor.by === "recovery") this.auditor.ends(by);
    this.world.counts.replaced += 1;
    return this.people.give({ kind: "recovery secret", secret, holder: by.holder, by, at: deed.at });
  }

  /** Only the owner may, and never does. */
  private async endAll(process: Process, by: Credential): Promise<void> {
    if (!isOfClaim(by)) return;
    const deed = this.auditor.deed("an end", by);
    if ((await this.letIn(process, deed)) === null) return;
    const outcome = await closeBalance(process.accounts, hashSecret(by.secret));
    check(outcome === null || refused(outcome), `${by.name} has ended the balance`);
  }

  private async undo(process: Process, revokeKeys: boolean): Promise<void> {
    const { account } = this.auditor;
    const known = this.knownBefore(revokeKeys);
    const outcome = await takeBack(process.accounts, hashSecret(this.secret.secret), revokeKeys);
    if (outcome === null || refused(outcome)) {
      const isKept = this.time.elapsedMs() - this.auditor.sinceMs >= UNDO_DAYS * DAY_MS - LONG_MS;
      check(account === null || account !== this.auditor.account || isKept, "the owner cannot undo a claim");
      return;
    }
    this.answered(revokeKeys ? known : null);
    this.world.counts.undone += 1;
    await this.judgeTakenBack(process, known);
  }

  /** The operator's. */
  private async detach(process: Process, revokeKeys: boolean): Promise<void> {
    const known = this.knownBefore(revokeKeys);
    const found = await process.accounts.store.balanceRecord(this.balance);
    const account = found?.owner?.account.id ?? found?.claimant?.id;
    if (account === undefined) return;
    const outcome = await detach(process.accounts, account, this.balance, revokeKeys);
    if (refused(outcome)) return;
    this.answered(revokeKeys ? known : null);
    this.world.counts.detached += 1;
    await this.judgeTakenBack(process, known);
  }

  /** A thief deletes an account. */
  private async delete({ accounts }: Process): Promise<void> {
    const session = this.people.pick("thief", ["session"]);
    if (session === undefined || (await accounts.store.session(hashSecret(session.secret))) === null) return;
    const outcome = await deleteAccount(accounts, session.account!);
    if (refused(outcome)) return;
    this.world.counts.deleted += 1;
    if (outcome.detached.includes(this.balance)) this.auditor.takenBack(null);
    if (!outcome.closed.includes(this.balance)) return;
    const isKept = this.time.elapsedMs() - this.auditor.sinceMs >= UNDO_DAYS * DAY_MS;
    check(isKept, "the balance ended within the week after its claim");
    this.isLost = true;
  }

  /** Where what was asked before was never answered, it may have revoked all keys that there were. */
  private knownBefore(revokeKeys: boolean): Credential[] {
    if (this.mayRevokeAll) this.mayBeRevokedBefore = this.auditor.turn();
    this.mayRevokeAll = revokeKeys;
    return this.keys();
  }

  private answered(revoked: readonly Credential[] | null): void {
    this.auditor.takenBack(revoked);
    this.mayRevokeAll = false;
    if (revoked !== null) this.mayBeRevokedBefore = this.auditor.turn();
  }

  /** The owner's secret opens the balance, and sees no key that has ended. */
  private async judgeTakenBack({ keys }: Process, known: readonly Credential[]): Promise<void> {
    for (const one of this.keys()) if (this.auditor.hasEnded(one)) this.judgeRemembered(one);
    const balance = await keys.store.balanceByRecovery(hashSecret(this.secret.secret));
    check(balance?.id === this.balance, "the owner's secret does not open what was taken back");
    const ended = this.people.held.filter((one) => this.auditor.hasEnded(one));
    const live = new Set<string>((await keys.store.liveKeysOf(this.balance, MANY)).map(({ id }) => id));
    for (const { id, name } of ended) check(!live.has(id), `${name} is listed as one that works`);
    for (const one of known)
      check(
        live.has(one.id) ||
          isOfClaim(one) ||
          one.at < this.mayBeRevokedBefore ||
          this.auditor.hasEnded(one) ||
          this.touched.has(this.chainOf(one.id)),
        `${one.name} ended with a claim that it does not derive from`,
      );
    this.sweep();
  }

  /** Every process has noticed what was answered. */
  private judgeRemembered({ secret, name }: Credential): void {
    for (const { keys, clock } of this.processes.all) {
      const current = keys.keyring.current({ hash: hashSecret(secret) }, clock.now());
      check(current === null || current === undefined, `${name} is remembered as one that works`);
    }
  }

  /** Nobody else acts any more: the owner takes everything back, and nothing of the thief's works. */
  private async takeAllBack(): Promise<void> {
    this.isOver = true;
    await this.done((process) => this.undo(process, this.random.chance(0.5)));
    if (this.auditor.account !== null)
      await this.done((process) => this.detach(process, this.random.chance(0.5)));
    check(this.auditor.account === null, "the balance is still somebody's");
    await this.done(async (process) => {
      const { keys } = process;
      const by = this.secret;
      const actor = await this.letIn(process, this.auditor.deed("the end", by));
      check(actor !== null, "the owner is locked out");
      for (const { id } of await keys.store.liveKeysOf(this.balance, MANY)) {
        check(!refused(await revoke(keys, id, actor)), `the owner cannot revoke ${id}`);
        this.ended(id);
      }
      await this.make(process, by);
      const own = this.people.held.at(-1)!;
      check(own.by === by, "the owner cannot make a key");
      const holder = await keys.keyring.identify(own.secret, process.clock.now());
      check(holder !== null, "the owner cannot spend");
      await this.judgeThief();
      if (this.auditor.wasTakenBack) await this.claimLast(process, own);
    });
  }

  private async judgeThief(): Promise<void> {
    for (const by of this.people.held)
      for (const process of by.holder === "thief" ? this.processes.all : []) {
        const actor = await this.letIn(process, { name: "the last", by, at: 0, isLate: false });
        check(actor === null, `${by.name} still opens the balance`);
      }
  }

  /** With the secret next to a key, the owner can claim again, and undo that. */
  private async claimLast(process: Process, own: Credential): Promise<void> {
    await this.claimBy(process, own, null);
    const claimed = this.world.counts.claimed;
    await this.claimWithSecret(process, own);
    check(this.world.counts.claimed === claimed + 1, "the owner cannot claim again");
    await this.judgeThief();
    await this.undo(process, false);
    const holder = await process.keys.keyring.identify(own.secret, process.clock.now());
    check(holder !== null, "the owner's key ended with the owner's claim");
  }

  /** With nothing else under way. */
  private async done(work: (process: Process) => Promise<unknown>): Promise<void> {
    let isDone = false;
    this.start((process) => work(process).finally(() => (isDone = true)));
    for (let round = 0; !isDone && round < 100; round++) await this.world.pass(LONG_MS);
    this.world.watch();
    check(isDone, "nothing happens any more");
  }
}

const MANY = 10_000;

let kept: Database | null = null;

/** One for all seeds, with no rows, because making it and preparing each store's statements takes longest. */
function emptied(): Database {
  kept ??= preparedOnce(emptyDatabase());
  for (const table of TABLES) kept.run(`DELETE FROM ${table}`);
  return kept;
}

const TABLES = ["keys", "claims", "sessions", "sign_in_links", "wallet_messages", "balances", "accounts"];

function preparedOnce(db: Database): Database {
  const prepare = db.prepare.bind(db) as (text: string) => Statement;
  const known = new Map<string, Statement>();
  const once = (text: string) => {
    const statement = known.get(text) ?? prepare(text);
    known.set(text, statement);
    return statement;
  };
  return Object.assign(db, { prepare: once });
}

import { type Email, readEmail } from "../../src/customers/accounts/email.ts";
import { requestLink, signInByLink, signInByWallet } from "../../src/customers/accounts/sign-in.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { refused } from "../../src/units/errors/refusal.ts";
import type { AccountId } from "../../src/units/id.ts";
import { hashSecret } from "../../src/units/secret-hash.ts";
import type { ClaimAuditor, Credential, Person } from "./claim-auditor.ts";
import type { Process } from "./claim-processes.ts";
import type { Random } from "./random.ts";

/** What an owner and a thief hold: keys, recovery secrets, sessions, and what was mailed to them. */
export class People {
  readonly held: Credential[] = [];
  /** The owner's accounts, which stay. */
  readonly ownAccounts = new Set<AccountId>();
  private readonly inboxes: Readonly<Record<Person, string[]>> = { owner: [], thief: [] };

  constructor(
    private readonly random: Random,
    private readonly auditor: ClaimAuditor,
  ) {}

  post(to: Email, text: string): void {
    const person = to === EMAILS.owner ? "owner" : "thief";
    this.inboxes[person].push(/#signin=(\S+)/.exec(text)![1]!);
  }

  give(given: Pick<Credential, "kind" | "secret" | "holder"> & Partial<Credential>): Credential {
    const { kind, holder, by = null } = given;
    const name = `${holder}'s ${kind} ${this.held.length}${by === null ? "" : `, by ${by.name}`}`;
    const credential = { id: "", by, account: null, at: this.auditor.turn(), ...given, name };
    this.held.push(credential);
    return credential;
  }

  /** Mostly one of the newest. */
  pick(holder: Person, kinds: readonly Credential["kind"][]): Credential | undefined {
    const own = this.held.filter((one) => one.holder === holder && kinds.includes(one.kind));
    return this.random.chance(0.6)
      ? own.at(-1 - this.random.below(Math.min(4, own.length)))
      : this.random.pick(own);
  }

  async signIn(process: Process, holder: Person, byWallet = this.random.chance(0.5)): Promise<void> {
    const at = this.auditor.turn();
    if (byWallet) {
      const made = await signInByWallet(process.accounts, await this.signed(process, holder));
      if (!refused(made)) this.entered(holder, made.session, made.account.id, at);
      return;
    }
    await requestLink(process.accounts, EMAILS[holder]);
    await this.useLink(process, holder);
  }

  /** Any that was mailed, used ones too. */
  async useLink({ accounts }: Process, holder: Person): Promise<void> {
    const links = this.inboxes[holder];
    const token = this.random.chance(0.8) ? links.at(-1) : this.random.pick(links);
    if (token === undefined) return;
    const at = this.auditor.turn();
    const made = await signInByLink(accounts, token);
    if (!refused(made)) this.entered(holder, made.session, made.account.id, at);
  }

  /** What a wallet that is a contract has signed. */
  async signed({ accounts, clock }: Process, holder: Person) {
    const message = `${holder} ${this.auditor.turn()}`;
    const expiresAt = (clock.now() + 600_000) as EpochMs;
    const kept = { hash: hashSecret(message), address: WALLETS[holder], chainId: 1, expiresAt };
    await accounts.store.change({}, () => ({ message: kept }));
    return { message, signature: "0x00" } as const;
  }

  private entered(holder: Person, secret: string, account: AccountId, at: number): void {
    this.give({ kind: "session", secret, holder, account, at });
    if (holder === "owner") this.ownAccounts.add(account);
  }
}

export const EMAILS: Readonly<Record<Person, Email>> = {
  owner: readEmail("owner@example.com")!,
  thief: readEmail("thief@example.com")!,
};
const WALLETS = { owner: `0x${"a".repeat(40)}`, thief: `0x${"b".repeat(40)}` } as const;

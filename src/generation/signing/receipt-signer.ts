import type { StoredReceipt } from "../../store/ledger/receipts.ts";
import type { SigningKey, SigningKeyStore } from "../../store/nodes/fleet.ts";
import { assert } from "../../units/assert.ts";
import type { Clock } from "../../units/clock.ts";
import type { RandomBytes } from "../../units/random.ts";
import { RELEASE } from "../../units/version.ts";
import { type JwkSet, type PublicJwk, privateKey, publicJwk, SEED_BYTES, signCompact } from "./jws.ts";

/**
 * Signs receipts when they are asked for, so that a request costs nothing more. A process keeps no key: each
 * signature is by the newest one in the store, which all processes share.
 */
export class ReceiptSigner {
  private reading: Promise<readonly SigningKey[]> | null = null;
  private listed: { readonly jwks: JwkSet; readonly atMs: number } | null = null;

  constructor(private readonly deps: ReceiptSignerDeps) {}

  /** Exactly the receipt, who issued it, whose it is, and the release that signed it. */
  async sign({ body, balanceId }: StoredReceipt): Promise<string> {
    const { x, d } = (await this.keys()).at(-1)!;
    assert(d !== null, "the newest signing key has no private part");
    const claims = { ...JSON.parse(body), iss: this.deps.issuer(), balance_id: balanceId, gateway: RELEASE };
    return signCompact(claims, { x, d });
  }

  /**
   * The keys that have ever signed, oldest first: receipts outlive them. Anybody may ask, so the store is read once a
   * second at most.
   */
  async jwks(): Promise<JwkSet> {
    const { listed } = this;
    if (listed !== null && this.deps.clock.elapsedMs() - listed.atMs < LISTED_MS) return listed.jwks;
    await this.keys();
    return this.listed!.jwks;
  }

  /** A new key signs from now on, and the earlier one cannot sign any more; null where there are too many. */
  async rotate(): Promise<PublicJwk | null> {
    const newest = (await this.keys()).at(-1)!;
    if (newest.number >= MAX_KEYS) return null;
    await this.deps.store.add(this.newKey(newest.number + 1));
    return publicJwk((await this.read()).at(-1)!.x);
  }

  /** Callers share one reading of the store. */
  private keys(): Promise<readonly SigningKey[]> {
    this.reading ??= this.read().finally(() => {
      this.reading = null;
    });
    return this.reading;
  }

  private async read(): Promise<readonly SigningKey[]> {
    const { store, clock } = this.deps;
    let keys = await store.list();
    if (keys.length === 0) {
      await store.add(this.newKey(1));
      keys = await store.list();
    }
    this.listed = { jwks: { keys: keys.map(({ x }) => publicJwk(x)) }, atMs: clock.elapsedMs() };
    return keys;
  }

  private newKey(number: number): SigningKey {
    const { clock, random } = this.deps;
    return { number, createdAt: clock.now(), ...privateKey(random(new Uint8Array(SEED_BYTES))) };
  }
}

export interface ReceiptSignerDeps {
  readonly store: Pick<SigningKeyStore, "list" | "add">;
  readonly clock: Pick<Clock, "now" | "elapsedMs">;
  readonly random: RandomBytes;
  /** The gateway's base address. */
  issuer(): string;
}

/** Monthly for 80 years; each takes 150 bytes of what anybody may ask for. */
const MAX_KEYS = 1_000;
const LISTED_MS = 1_000;

import { expect, test } from "bun:test";
import { type GasLineStore, type GasNonce, MAX_QUEUED } from "../../src/payments/gas-line.ts";
import { epochMs } from "../../src/units/clock.ts";

const ACCOUNT = { chainId: 1, address: "0xa" };
const row = (nonce: number, payment: string | null = `p${nonce}`, signed = ["0x1"]) =>
  ({ nonce, payment, signed, createdAt: epochMs(1), signedAt: epochMs(2) }) as GasNonce;

/** What both databases do with the nonces of a gas account. */
export function gasLineCases(open: () => Promise<{ store: GasLineStore; close(): Promise<void> }>): void {
  const withStore = async (work: (store: GasLineStore) => Promise<void>) => {
    const { store, close } = await open();
    await work(store);
    await close();
  };

  test("the lowest free nonce is taken, from the mined ones on, and a payment has one", () =>
    withStore(async (store) => {
      expect(await store.take(ACCOUNT, row(3), 3)).toEqual({ kind: "taken" });
      expect(await store.take(ACCOUNT, row(3, "b"), 3)).toEqual({ kind: "another", nonce: 4 });
      expect(await store.take(ACCOUNT, row(9, "p3"), 3)).toEqual({ kind: "known", row: row(3) });
      expect(await store.take(ACCOUNT, row(5), 5)).toEqual({ kind: "taken" });
      expect(await store.take(ACCOUNT, row(6), 3)).toEqual({ kind: "another", nonce: 4 });
      // Once its nonce is in a block without it, the payment needs another.
      expect(await store.take(ACCOUNT, row(4, "p3"), 4)).toEqual({ kind: "taken" });
      expect(await store.take({ ...ACCOUNT, chainId: 2 }, row(3), 3)).toEqual({ kind: "taken" });
      expect((await store.line(ACCOUNT)).map(({ nonce }) => nonce)).toEqual([3, 4, 5]);
    }));

  test("of twenty that take a nonce at once, each gets its own", () =>
    withStore(async (store) => {
      const take = async (payment: string) => {
        for (let nonce = 0; ; ) {
          const taken = await store.take(ACCOUNT, row(nonce, payment), 0);
          if (taken.kind !== "another") return nonce;
          nonce = taken.nonce;
        }
      };
      const nonces = await Promise.all(Array.from({ length: 20 }, (_, index) => take(`p${index}`)));
      expect(nonces.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index));
    }));

  test("no more than so many wait", () =>
    withStore(async (store) => {
      for (let nonce = 0; nonce < MAX_QUEUED; nonce++) await store.take(ACCOUNT, row(nonce), 0);
      expect(await store.take(ACCOUNT, row(MAX_QUEUED), 0)).toEqual({ kind: "full" });
      expect(await store.take(ACCOUNT, row(MAX_QUEUED), 1)).toEqual({ kind: "taken" });
    }));

  test("of two replacements of one transaction, one is written; final nonces are forgotten", () =>
    withStore(async (store) => {
      await store.take(ACCOUNT, row(0), 0);
      const next = row(0, null, ["0x1", "0x2"]);
      expect(await store.replace(ACCOUNT, row(0), next)).toBe(true);
      expect(await store.replace(ACCOUNT, row(0), row(0, "p0", ["0x1", "0x3"]))).toBe(false);
      expect(await store.line(ACCOUNT)).toEqual([next]);
      await store.forget(ACCOUNT, 1);
      expect(await store.line(ACCOUNT)).toEqual([]);
    }));
}

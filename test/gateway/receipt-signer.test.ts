import { expect, test } from "bun:test";
import { ReceiptSigner } from "../../src/generation/signing/receipt-signer.ts";
import type { SigningKey } from "../../src/store/nodes/fleet.ts";
import { systemRandom } from "../../src/units/random.ts";
import { ManualClock } from "../fakes/clock.ts";

test("the keys that receipts are signed with are read once a second, however many ask, and again where one is used", async () => {
  const kept: SigningKey[] = [];
  let reads = 0;
  const clock = new ManualClock();
  const signer = new ReceiptSigner({
    store: {
      async list() {
        reads += 1;
        return [...kept];
      },
      add: async (key) => kept.push(key) > 0,
    },
    clock,
    random: systemRandom,
    issuer: () => "https://gateway.example",
  });
  const [first] = (await signer.jwks()).keys;
  reads = 0;
  for (let times = 0; times < 100; times++) expect((await signer.jwks()).keys).toEqual([first!]);
  expect(reads).toBe(0);
  clock.advance(1_000);
  await Promise.all(Array.from({ length: 100 }, () => signer.jwks()));
  expect(reads).toBe(1);
  const second = await signer.rotate();
  expect((await signer.jwks()).keys).toEqual([first!, second!]);
  expect(kept.map(({ number }) => number)).toEqual([1, 2]);
});

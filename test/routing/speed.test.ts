import { describe, expect, test } from "bun:test";
import { Speed } from "../../src/routing/speed.ts";
import { BALANCE } from "./world.ts";

const PROMPT = 100;

/**
 * A route whose streams took 1, 2, 3, … `count` ms to their first token, and then gave as many tokens a
 * second.
 */
function measured(count: number): Speed {
  const speed = new Speed();
  for (let sample = 1; sample <= count; sample++) {
    speed.firstToken(sample, PROMPT, BALANCE, 0);
    speed.wrote(sample, 1_000, BALANCE, 0);
  }
  return speed;
}

describe("what is known of a route's speed", () => {
  test("nothing, before anything was measured", () => {
    const speed = new Speed();
    expect([speed.firstTokenMs, speed.tokensPerSecond]).toEqual([null, null]);
    expect([speed.firstTokenMsWithin(0.5), speed.tokensPerSecondReached(0.5)]).toEqual([null, null]);
  });

  test("an average from the first stream on, percentiles from the sixteenth", () => {
    expect(measured(1).firstTokenMs).toBe(1);
    expect(measured(15).firstTokenMsWithin(0.5)).toBeNull();
    expect(measured(16).firstTokenMsWithin(0.5)).toBe(8);
  });

  test("a share of first tokens comes within, the same share reaches a throughput", () => {
    const speed = measured(100);
    expect([0.5, 0.9, 0.99, 1].map((share) => speed.firstTokenMsWithin(share))).toEqual([50, 90, 99, 100]);
    expect([0.5, 0.9, 1].map((share) => speed.tokensPerSecondReached(share))).toEqual([50, 10, 1]);
  });

  test("how fast it works for seconds on end is known from long streams alone, however fast others burst", () => {
    const speed = new Speed();
    speed.wrote(3_000, 300, BALANCE, 0);
    expect([speed.tokensPerSecond, speed.sustainedTokensPerSecond]).toEqual([10_000, null]);
    speed.wrote(300, 3_000, BALANCE, 0);
    expect(speed.sustainedTokensPerSecond).toBe(100);
    for (let burst = 0; burst < 100; burst++) speed.wrote(3_000, 300, BALANCE, 0);
    expect(speed.sustainedTokensPerSecond).toBe(100);
  });

  test("only the last 128 streams count", () => {
    expect(measured(1_000).firstTokenMsWithin(0)).toBe(873);
    expect(measured(1_000).firstTokenMsWithin(1)).toBe(1_000);
  });

  test("percentiles may be a few streams old, not more", () => {
    const speed = measured(128);
    expect(speed.firstTokenMsWithin(1)).toBe(128);
    for (let count = 0; count < 8; count++) speed.firstToken(5_000, PROMPT, BALANCE, 0);
    expect(speed.firstTokenMsWithin(1)).toBe(5_000);
  });

  test("prompts of one size are distinguished from those of another", () => {
    const speed = new Speed();
    for (let count = 0; count < 20; count++) {
      speed.firstToken(100, 1_000, BALANCE, 0);
      speed.firstToken(3_000, 64_001, BALANCE, 0);
    }
    expect(
      [1, 1_000, 1_001, 64_000, 64_001, 1e9].map((size) => speed.firstTokenMsWithinFor(0.99, size)),
    ).toEqual([100, 100, null, null, 3_000, 3_000]);
  });

  test("what is no time and no rate is left out", () => {
    const speed = measured(16);
    for (const sample of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
      for (let count = 0; count < 16; count++) {
        speed.firstToken(sample, PROMPT, BALANCE, 0);
        speed.wrote(sample, 1_000, BALANCE, 0);
      }
    }
    expect([speed.firstTokenMsWithin(1), speed.tokensPerSecondReached(0)]).toEqual([16, 16]);
  });
});

import { expect, test } from "bun:test";
import { ATTACKS, benchAttacks } from "../../bench/attacks.ts";

test("the attack bench runs, small: attackers are refused, who pays is served, and the owner revokes", async () => {
  const rows = await benchAttacks({ only: null, seconds: 0.4, keys: 8, setUps: 500, secrets: 200 });
  for (const { load, requests, errors, revoked, revokeErrors } of rows) {
    expect([load, errors, revokeErrors]).toEqual([load, 0, 0]);
    expect(requests).toBeGreaterThan(0);
    expect(revoked).toBeGreaterThan(0);
  }
  const [quiet, ...attacks] = rows;
  expect(quiet!.answers).toEqual({});
  expect(attacks).toHaveLength(Object.keys(ATTACKS).length);
  const answersTo = (name: string) => attacks[Object.keys(ATTACKS).indexOf(name)]!.answers;
  expect(answersTo("setups")[201] ?? 0).toBeLessThanOrEqual(240);
  expect(answersTo("secrets")[401] ?? 0).toBeLessThanOrEqual(60);
});

import { expect, test } from "bun:test";
import { ConnectionSlots } from "../../../src/hosts/slots/connection-slots.ts";
import type { BalanceId } from "../../../src/units/id.ts";

const MOST = 80;

/** Connections that open one after another until a limit is reached. */
function openUntilFull(
  slots: ConnectionSlots,
  pays: boolean,
  balance: (n: number) => string,
  network: (n: number) => string,
) {
  const close: (() => void)[] = [];
  for (let n = 0; n <= MOST; n++) {
    const taken = slots.take({ balance: balance(n) as BalanceId, network: network(n), pays });
    if (typeof taken !== "function") return { close, full: taken };
    close.push(taken);
  }
  throw new Error("No limit was reached.");
}

const each = (n: number) => `bal_${n}`;
const one = () => "same";

test.each([
  ["a quarter for a balance with credit", true, one, each, 20, "balance"],
  ["half for a network with credit", true, each, one, 40, "network"],
  ["all but an eighth for everybody with credit", true, each, each, 70, "gateway"],
  ["two for a balance without credit", false, one, each, 2, "balance"],
  ["four for a network without credit", false, each, one, 4, "network"],
  ["an eighth for everybody without credit", false, each, each, 10, "gateway"],
] as const)("80 connections: %s", (_, pays, balance, network, most, of) => {
  const { close, full } = openUntilFull(new ConnectionSlots(() => MOST), pays, balance, network);
  expect(close).toHaveLength(most);
  expect(full).toEqual({ most, of });
});

test("those without credit never have more than 16, however many there are", () => {
  const { full } = openUntilFull(new ConnectionSlots(() => 1_000), false, each, each);
  expect(full).toEqual({ most: 16, of: "gateway" });
});

test("a closed connection makes room for one, and closing it again for none", () => {
  const slots = new ConnectionSlots(() => MOST);
  const { close } = openUntilFull(slots, false, one, each);
  const owner = { balance: "same" as BalanceId, network: "elsewhere", pays: false };
  close[0]!();
  close[0]!();
  expect(slots.take(owner)).toBeFunction();
  expect(slots.take(owner)).toEqual({ most: 2, of: "balance" });
});

test("owners without an open connection are not remembered", () => {
  const slots = new ConnectionSlots(() => MOST);
  for (const close of openUntilFull(slots, true, each, each).close) close();
  expect((slots as unknown as { taken: Map<string, number> }).taken.size).toBe(0);
});

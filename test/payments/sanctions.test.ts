import { afterAll, expect, test } from "bun:test";
import { rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSanctionsList, Sanctions } from "../../src/payments/rails/x402/sanctions.ts";
import { ManualClock } from "../fakes/clock.ts";
import { NETWORK } from "../sim/simulated-chain.ts";

const FILE = join(tmpdir(), `sanctions-${crypto.randomUUID()}`);
afterAll(() => rmSync(FILE));

const LISTED = `0x${"aB".repeat(20)}`;
const OTHER = `0x${"1".repeat(40)}`;
const payer = LISTED.toLowerCase() as `0x${string}`;
const noOracle = { isSanctioned: () => Promise.reject(new Error("no oracle is set")) };

const screened = (sanctions: Sanctions) => sanctions.isHit(payer, NETWORK, noOracle);

test.each([
  ["one in each line", `${OTHER}\n${LISTED}\n`],
  ["lines that end in CR LF", `${OTHER}\r\n${LISTED}\r\n`],
  ["lines that end in CR", `${OTHER}\r${LISTED}\r`],
  ["comments and empty lines", `# of May\n\n${LISTED} # somebody\n`],
  ["a byte order mark", `\uFEFF${LISTED}\n`],
  ["a name after the address", `${LISTED} Somebody\n`],
  ["a tab and a name", `${LISTED}\tSomebody\n`],
  ["quoted CSV", `"${LISTED}","Somebody"\n`],
  ["the second column of CSV", `ETH,${LISTED}\n`],
  ["an array of JSON in one line", `["${OTHER}","${LISTED}"]`],
  ["0X", `${LISTED.replace("0x", "0X")}\n`],
])("a list with %s names the payer", async (_, text) => {
  await Bun.write(FILE, text);
  expect(await screened(new Sanctions({ list: FILE, oracle: false }, new ManualClock()))).toBe(true);
});

const utf16 = (text: string) => Buffer.from(`\uFEFF${text}`, "utf16le");

test.each([
  ["is an array of JSON over several lines", `[\n"${LISTED}"\n]\n`, "line 1"],
  ["is UTF-16", utf16(`${LISTED}\n`), "line 1"],
  ["is a page of HTML", `<html><body>Not found</body></html>`, "line 1"],
  ["has a heading", `address,name\n${LISTED},Somebody\n`, "line 1"],
  ["was cut inside an address", `${OTHER}\n${LISTED.slice(0, 30)}`, "line 2"],
  ["has a hash of 64 digits in place of an address", `${OTHER}\n0x${"1".repeat(64)}\n`, "line 2"],
  ["is empty", "", "no address"],
  ["has nothing but comments", `# ${LISTED}\n`, "no address"],
])("a list that %s lets nobody pay", async (_, text, why) => {
  await Bun.write(FILE, text);
  const sanctions = new Sanctions({ list: FILE, oracle: false }, new ManualClock());
  await expect(screened(sanctions)).rejects.toThrow(why);
  await expect(readSanctionsList(FILE)).rejects.toThrow(why);
  await sanctions.refresh();
  expect(sanctions.figures()).toEqual({ addresses: 0, ageS: null });
});

test("a list that is replaced by one that cannot be read lets nobody pay until it can be again", async () => {
  const clock = new ManualClock();
  const sanctions = new Sanctions({ list: FILE, oracle: false }, clock);
  const replaced = async (text: string, at: number) => {
    await Bun.write(FILE, text);
    utimesSync(FILE, at, at);
    clock.advance(60_000);
    await sanctions.refresh();
  };
  await replaced(`${OTHER}\n`, 1);
  expect([await screened(sanctions), sanctions.figures()?.addresses]).toEqual([false, 1]);
  await replaced("<html>", 2);
  await expect(screened(sanctions)).rejects.toThrow("line 1");
  expect(sanctions.figures()?.addresses).toBe(0);
  await replaced(`${LISTED}\n${OTHER}\n`, 3);
  expect([await screened(sanctions), sanctions.figures()?.addresses]).toEqual([true, 2]);
});

test("without a list there is none to tell of", () => {
  expect(new Sanctions({ list: null, oracle: false }, new ManualClock()).figures()).toBeNull();
});

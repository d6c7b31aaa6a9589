import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ATTACKS } from "../../bench/attacks.ts";

/** For each resource of docs/resource-limits.md: the tests that use it up, and the attacks of the bench that do. */
interface Proof {
  readonly tests: readonly string[];
  readonly attacks: readonly string[];
}

const WITH_CREDIT: Readonly<Record<string, Proof>> = {
  WebSockets: {
    tests: ["of a balance that pays, a quarter of those that memory allows; a network has half"],
    attacks: ["frames", "fragments", "sockets"],
  },
  "memory of WebSockets: incoming messages and turns": {
    tests: [
      "take their memory when the connection opens, and give it back when it closes",
      "turns that wait or are answered on a connection have as many bytes together as one message may have",
    ],
    attacks: ["frames", "fragments"],
  },
  "silent WebSockets": {
    tests: ["who finishes no message within two minutes is disconnected, though they answer pings"],
    attacks: ["fragments"],
  },
  "memory for large bodies": {
    tests: ["who could not pay has a quarter of it, and waits behind who could", "keys have their turns"],
    attacks: ["uploads", "letters"],
  },
  "conversations that WebSockets continue, in memory": {
    tests: [
      "the sender that keeps most of them forgets its own, and not the few of others",
      "what a turn continues is not kept for it: it may be forgotten meanwhile, and then what follows is not found",
    ],
    attacks: ["sockets"],
  },
  "answers kept for `Idempotency-Key`": {
    tests: ["of all together are 64 MiB, and those of who has no credit have 4 MiB of their own"],
    attacks: ["free"],
  },
  "one answer": {
    tests: [
      "that streams calls without end is cut off after 1,024 of them",
      "that streams text far beyond its ceiling is cut off",
    ],
    attacks: [] /* none: its host is the attacker */,
  },
  "requests examined": {
    tests: ["requests of one balance, whatever limits its owner gives its keys"],
    attacks: ["requests", "values"],
  },
  "token counting": {
    tests: ["counts in vain are bounded a minute and balance, and begin again when the minute is over"],
    attacks: ["letters"],
  },
  "sums of usage": { tests: ["sums of usage: a balance has four computed at a time"], attacks: ["usage"] },
  "slots at hosts": { tests: ["free requests"], attacks: ["free"] },
  "queues before hosts, 1,000 each": {
    tests: [
      "each balance has its turn, whatever number of keys it has: a hundred requests of one do not keep another waiting",
      "in a full line the greedy key makes room for others, never the other way round",
    ],
    attacks: ["free"],
  },
  "keys and rotations": { tests: ["keys of balances without credit"], attacks: ["keys"] },
  runs: { tests: ["who has no credit has few runs"], attacks: ["changes"] },
  disk: { tests: ["the journal: what is refused writes nothing to it"], attacks: ["requests"] },
};

const WITHOUT_CREDIT: Readonly<Record<string, Proof>> = {
  "requests to any endpoint (0.2 ms each; a large body counts for up to nine)": {
    tests: [
      "requests of one balance, whatever limits its owner gives its keys",
      "requests with a body of nothing but values count by its size",
      "requests to any endpoint, and changes: what ends a key is never too much",
    ],
    attacks: ["requests", "values"],
  },
  "changes of keys, budgets and runs (a synced row)": {
    tests: [
      "changes of keys count for five, because each is synced to the disk",
      "who has no credit has few runs",
    ],
    attacks: ["changes"],
  },
  "token counting, in a thread of its own": {
    tests: [
      "the counting thread: letters without a space are counted for so long, and then estimated",
      "whatever nobody pays for is counted elsewhere: who pays does not wait until it is done",
    ],
    attacks: ["letters"],
  },
  "parsing large bodies (over 64 KiB), in that thread": {
    tests: ["the bytes of large bodies: a balance has one of the largest read a minute"],
    attacks: ["letters"],
  },
  "memory for large bodies (`body_memory_bytes`)": {
    tests: ["the room for large bodies: ten megabytes that hardly come, from sixty networks"],
    attacks: ["uploads"],
  },
  "slow bodies, paid ones too": {
    tests: ["the room for large bodies: ten megabytes that hardly come, from sixty networks"],
    attacks: ["uploads"],
  },
  "large bodies of endpoints without a prompt (over 128 KiB), paid ones too": {
    tests: ["the room for large bodies of other endpoints"],
    attacks: ["controls"],
  },
  "free requests": { tests: ["free requests"], attacks: ["free"] },
  "slots of a host with paid routes": {
    tests: [
      "free requests at one worker leave half of the places to paid ones, which another worker gets",
      "free requests hold half of a host's slots at most, and wait behind paid ones",
    ],
    attacks: ["free"],
  },
  "queues before hosts": {
    tests: [
      "the line before a host: others than the sender that fills it are served",
      "a line full of free requests is full for free ones alone",
      "free requests hold half of a host's slots at most, and wait behind paid ones",
    ],
    attacks: ["free"],
  },
  "new balances (two rows)": {
    tests: ["from one address", "from ever other address of one /24", "from ever other /64 of one /48"],
    attacks: ["setups"],
  },
  "more keys and rotations (a row each)": { tests: ["keys of balances without credit"], attacks: ["keys"] },
  disk: {
    tests: ["go after so many days; what has money, a receipt, a newer key or a suspension stays"],
    attacks: ["setups"],
  },
  journal: { tests: ["the journal: what is refused writes nothing to it"], attacks: ["requests"] },
  "receipts of refused requests, in memory": {
    tests: ["receipts of refused requests: the latest are kept, and those of who pays apart"],
    attacks: ["requests"],
  },
  "answers kept for `Idempotency-Key`": {
    tests: [
      "of all together are 64 MiB, and those of who has no credit have 4 MiB of their own",
      "are no more than 2,000, or 20 without credit, of which the oldest are forgotten",
    ],
    attacks: ["free"],
  },
  "requests that a worker passes on for an `Idempotency-Key`": {
    tests: ["without credit has a thousand of a worker's requests passed on at a time"],
    attacks: ["free"],
  },
  "keys and balances in memory": {
    tests: ["reach the store once each, and push no good key out"],
    attacks: ["pages"],
  },
  "wrong secrets and links (a disk read each)": {
    tests: ["wrong recovery secrets, from the owner's own address"],
    attacks: ["secrets"],
  },
  "wrong admin tokens": { tests: ["wrong admin tokens"], attacks: ["admin"] },
  mails: {
    tests: [
      "mails, and messages for wallets to sign",
      "mails for all together: who has signed in before still gets one",
      "claims for all together: who has credit still makes one",
    ],
    attacks: ["mails"],
  },
  "messages for wallets": { tests: ["mails, and messages for wallets to sign"], attacks: ["wallets"] },
  "calls of wallets' nodes": {
    tests: ["nodes that are asked about wallets: so many questions at once"],
    attacks: ["wallets"],
  },
  "calls of chain nodes for payments (eight a try)": {
    tests: [
      "requests with wrong signatures ask the node no more than so often",
      "what was not paid after all leaves nothing to watch where its signature is wrong",
    ],
    attacks: ["wallets"],
  },
  "gas that failed transfers waste (up to 300,000 each)": {
    tests: [
      "a wallet whose transfer failed in a block costs gas once, and is refused for a day by every process",
      "contract wallets waste no more gas than an hour may, and plain accounts go on",
    ],
    attacks: [] /* none: needs a chain */,
  },
  "remembered networks and balances": {
    tests: ["so many networks are remembered, and the idlest are forgotten first"],
    attacks: ["pages"],
  },
  "sums of usage": { tests: ["sums of usage: a balance has four computed at a time"], attacks: ["usage"] },
  "pages, `/v1/models`, errors": {
    tests: ["pages and unknown keys are answered from memory"],
    attacks: ["pages"],
  },
  "the list of receipt-signing keys": {
    tests: ["the keys that receipts are signed with are listed from memory"],
    attacks: ["pages"],
  },
  "Stripe's events, up to 256 KiB (two hashes each)": {
    tests: ["Stripe's events: of large ones that Stripe has not signed, a network has 60 looked at an hour"],
    attacks: ["events"],
  },
  "card orders, each a call to Stripe": {
    tests: ["card orders: a balance has four pages open, and Stripe is asked sixteen times at once"],
    attacks: ["orders"],
  },
  WebSockets: {
    tests: ["WebSockets: a balance has two, a network four, and what is refused on them counts as requests"],
    attacks: ["sockets"],
  },
  "messages over WebSockets, refused ones too": {
    tests: ["WebSockets: a balance has two, a network four, and what is refused on them counts as requests"],
    attacks: ["sockets"],
  },
  "conversations that WebSockets continue, in memory": {
    tests: ["conversations are kept in so many bytes, and those continued longest ago are forgotten first"],
    attacks: ["sockets"],
  },
  connections: {
    tests: ["connections that say nothing, or only the beginning of a head"],
    attacks: ["connections"],
  },
};

const ROOT = join(import.meta.dir, "../..");
const page = readFileSync(join(ROOT, "docs/resource-limits.md"), "utf8");
const [byCredit = [], withoutCredit = []] = page.split("\n| resource").slice(1).map(cellsOf);
const tests = [...new Bun.Glob("test/**/*.ts").scanSync({ cwd: ROOT })]
  .map((file) => readFileSync(join(ROOT, file), "utf8"))
  .join("\n");

/** The cells of a table, its head first. */
function cellsOf(table: string): string[][] {
  const [head = "", , ...lines] = `| resource${table}`.split("\n\n")[0]!.split("\n");
  return [head, ...lines].map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

test.each([
  [byCredit, ["resource of a balance", "bound"], WITH_CREDIT],
  [withoutCredit, ["resource without credit", "a balance", "a network", "in all"], WITHOUT_CREDIT],
] as const)(
  "each resource of a table has its bounds, and tests that use it up",
  ([head, ...rows], columns, proofs) => {
    expect(head).toEqual([...columns]);
    expect(rows.flat().filter((cell) => cell === "")).toEqual([]);
    expect(rows.filter((row) => row.slice(1).every((cell) => cell === "–"))).toEqual([]);
    expect(rows.map(([resource]) => resource!)).toEqual(Object.keys(proofs));
  },
);

test.each([...Object.entries(WITH_CREDIT), ...Object.entries(WITHOUT_CREDIT)])("%s", (_, proof) => {
  expect(proof.tests).not.toEqual([]);
  expect(proof.tests.filter((name) => !tests.includes(`(${JSON.stringify(name)}`))).toEqual([]);
  expect(proof.attacks.filter((name) => !(name in ATTACKS))).toEqual([]);
});

test("each attack of the bench is about a resource of the page", () => {
  const named = new Set(
    [WITH_CREDIT, WITHOUT_CREDIT].flatMap(Object.values<Proof>).flatMap(({ attacks }) => attacks),
  );
  expect(Object.keys(ATTACKS).filter((name) => !named.has(name))).toEqual([]);
});

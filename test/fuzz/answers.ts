import { gzipSync } from "node:zlib";
import { type Model, SURFACE_NAMES, type SurfaceName } from "../../src/catalog/catalog.ts";
import { pricePerMillion } from "../../src/units/usd.ts";
import { type FakeHost, hostRow, startFakeHost } from "../fakes/host.ts";
import { ACCENTED, OFFICIAL } from "../fakes/hosts/all.ts";
import { SICK } from "../fakes/hosts/sick.ts";
import type { Wire } from "../fakes/wire.ts";
import {
  heldNano,
  openTestGateway,
  read,
  requestBody,
  type TestGateway,
} from "../generation/test-gateway.ts";
import { Random } from "../sim/random.ts";
import { type Found, inParallel, unlessItHangs } from "./cases.ts";
import { mutated, spoilt } from "./mutate.ts";

/** An answer of a host, as bytes on its connection, to a request of a client of any language. */
export interface AnswerCase {
  readonly client: SurfaceName;
  readonly host: SurfaceName;
  readonly stream: boolean;
  /** In base64. */
  readonly answer: string;
  /** Where the bytes are parted on their way. */
  readonly cuts: readonly number[];
  readonly end: "close" | "open" | "reset";
}

export function answerCases(seed: number, count: number): AnswerCase[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => drawn(random));
}

const TRANSCRIPTS: readonly {
  readonly host: SurfaceName;
  readonly stream: string;
  readonly whole?: object;
}[] = [...OFFICIAL, ...ACCENTED, ...SICK].map(([, one]) => one);

function drawn(random: Random): AnswerCase {
  const { host, stream, whole } = random.pick(TRANSCRIPTS);
  const streamed = whole === undefined || random.chance(0.6);
  const wellFormed = streamed
    ? response(random, "text/event-stream", spoiltEvents(stream, random))
    : response(
        random,
        "application/json",
        JSON.stringify(random.chance(0.7) ? spoilt(whole, random) : whole),
      );
  const answer = random.chance(0.5) ? mutated(wellFormed, random) : wellFormed;
  return {
    client: random.pick(SURFACE_NAMES),
    host,
    stream: random.chance(0.5),
    answer: answer.toString("base64"),
    cuts: Array.from({ length: random.below(4) }, () => random.below(answer.length + 1)).sort(
      (a, b) => a - b,
    ),
    end: random.pick(["close", "close", "close", "close", "close", "open", "open", "reset"] as const),
  };
}

function spoiltEvents(stream: string, random: Random): string {
  if (random.chance(0.3)) return stream;
  const events = stream.split("\n\n");
  const at = random.below(events.length);
  events[at] = events[at]!.replace(
    /^data: (\{.*\})$/m,
    (_, data) => `data: ${JSON.stringify(spoilt(JSON.parse(data), random))}`,
  );
  if (random.chance(0.2)) events.splice(at, random.below(3));
  return events.join("\n\n");
}

function response(random: Random, type: string, text: string): Buffer {
  const plain = Buffer.from(text);
  const packed = random.chance(0.15);
  const body = packed ? gzipSync(plain) : plain;
  const status = random.chance(0.8) ? "200 OK" : random.pick(STATUSES);
  const head = [`HTTP/1.1 ${status}`, `Content-Type: ${type}`, ...(packed ? ["Content-Encoding: gzip"] : [])];
  const framing = random.below(3);
  if (framing === 0)
    return Buffer.concat([
      Buffer.from([...head, `Content-Length: ${body.length}`, "", ""].join("\r\n")),
      body,
    ]);
  if (framing === 1)
    return Buffer.concat([Buffer.from([...head, "Connection: close", "", ""].join("\r\n")), body]);
  return Buffer.concat([
    Buffer.from([...head, "Transfer-Encoding: chunked", "", ""].join("\r\n")),
    ...chunks(body, random),
    Buffer.from("0\r\n\r\n"),
  ]);
}

const STATUSES = [
  "400 Bad Request",
  "401 Unauthorized",
  "404 Not Found",
  "413 Too Large",
  "422 No",
  "429 Slow",
  "500 Oh",
  "503 Busy",
  "529 Busy",
  "204 Nothing",
  "304 Same",
  "301 Moved\r\nLocation: /",
  "100 Continue",
  "101 Switching Protocols",
  "103 Hints",
  "199 Odd",
  "600 Odd",
  "0 Odd",
];

function chunks(body: Buffer, random: Random): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const part = body.subarray(at, at + 1 + random.below(400));
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n"));
    at += part.length;
  }
  return parts;
}

/**
 * Runs each case through the conductor, on real sockets, and returns what went wrong: a failure of the
 * gateway's own, an answer that never ends, one that no client can parse, money that is held or missing at the
 * end.
 */
export async function fuzzAnswers(
  cases: readonly AnswerCase[],
  progress: (done: number) => void = () => {},
): Promise<Found<AnswerCase>[]> {
  const found: Found<AnswerCase>[] = [];
  for (let from = 0; from < cases.length; from += WORLD_CASES) {
    const some = cases.slice(from, from + WORLD_CASES);
    const wrong = await runAll(some, (done) => progress(from + done));
    // Several run at once: alone, each shows what it is to blame for.
    if (wrong.unattributed) for (const one of some) found.push(...(await runAll([one])).found);
    found.push(...wrong.found);
  }
  return found;
}

/** In one gateway, before it is audited and another is opened. */
const WORLD_CASES = 500;
const AT_ONCE = 32;

interface Wrong {
  readonly found: Found<AnswerCase>[];
  /** Something went wrong of which it is not known whose fault it was. */
  readonly unattributed: boolean;
}

async function runAll(
  cases: readonly AnswerCase[],
  progress: (done: number) => void = () => {},
): Promise<Wrong> {
  const world = await World.open(cases);
  const found: Found<AnswerCase>[] = [];
  let done = 0;
  await inParallel([...cases.entries()], AT_ONCE, async ([index, one]) => {
    const wrong = await unlessItHangs(world.wrongWith(one, index));
    if (wrong !== null) found.push({ case: one, wrong });
    progress(++done);
  });
  const wrong = await world.close();
  if (wrong.length === 0) return { found, unattributed: false };
  if (cases.length > 1) return { found, unattributed: true };
  return { found: [...found, { case: cases[0]!, wrong: wrong.join("; ") }], unattributed: false };
}

class World {
  private constructor(
    private readonly gateway: TestGateway,
    private readonly host: FakeHost,
  ) {}

  static async open(cases: readonly AnswerCase[]): Promise<World> {
    const host = await startFakeHost((request) => {
      const one = cases[Number(/case (\d+)/.exec(request.text())![1])]!;
      return (wire) => answer(wire, one);
    });
    const rows = SURFACE_NAMES.map((speaks) => hostRow(host, { id: speaks, speaks: [speaks] }));
    const gateway = await openTestGateway([rows[0]!], {
      blind: true,
      creditUsd: 1_000_000,
      models: rows.map((row) => modelAt(row)),
      settings: { attempts: LIMITS, chunkGapMs: LIMITS.chunkGapMs, totalMs: LIMITS.totalMs },
    });
    return new World(gateway, host);
  }

  async wrongWith({ client, host, stream }: AnswerCase, index: number): Promise<string | null> {
    const message =
      client === "responses"
        ? { input: `case ${index}` }
        : { messages: [{ role: "user", content: `case ${index}` }] };
    const body = requestBody(client, {
      ...message,
      model: `fuzz/${host}`,
      stream,
      ...(client === "responses" ? {} : { max_tokens: 1_000 }),
    });
    try {
      const answered = await this.gateway.send(client, body);
      const text = await read(answered);
      if (answered.status === 500 || text.includes('"internal_error"'))
        return `an internal error: ${text.slice(0, 300)}`;
      return answered.kind === "whole" ? wrongJson(text) : wrongStream(text);
    } catch (error) {
      return `thrown: ${(error as Error).stack}`;
    }
  }

  /** What is wrong after all of it. */
  async close(): Promise<string[]> {
    const { gateway, host } = this;
    const wrong = gateway.faults.map((fault) => `a fault: ${fault instanceof Error ? fault.stack : fault}`);
    const held = await heldNano(gateway);
    if (held !== 0) wrong.push(`${held} nano-dollars are still held`);
    if (gateway.ledger.openHolds !== 0) wrong.push(`${gateway.ledger.openHolds} holds are open`);
    for (const { account, driftNano } of await gateway.drifts())
      wrong.push(`${account} drifted by ${driftNano}`);
    for (const { host: id, inFlight } of gateway.slots.loads())
      if (inFlight > 0) wrong.push(`${inFlight} places at ${id} are taken`);
    await gateway.close();
    await host.close();
    return wrong;
  }
}

/** Short, because answers that stop in the middle are waited for. */
const LIMITS = { firstTokenMs: 400, maxHosts: 3, hedgeMs: null, chunkGapMs: 400, totalMs: 4_000 };

const PRICE = {
  input: pricePerMillion(1)!,
  output: pricePerMillion(10)!,
  cacheRead: pricePerMillion(1)!,
  cacheWrite: pricePerMillion(1)!,
};

/** Two hosts, as it were, so that what the first says wrong is tried at the next. */
const modelAt = (host: ReturnType<typeof hostRow>): Model => ({
  id: `fuzz/${host.id}`,
  name: host.id,
  contextLength: 100_000,
  maxOutputTokens: 4_000,
  price: PRICE,
  routes: [host, { ...host, id: `${host.id}-2` }].map((one) => ({
    host: one,
    model: "m",
    price: PRICE,
    free: false,
  })),
});

async function answer(wire: Wire, { answer: base64, cuts, end }: AnswerCase): Promise<void> {
  const bytes = Buffer.from(base64, "base64");
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    await wire.write(bytes.subarray(from, to));
    if (to !== from && to !== bytes.length) await new Promise((next) => setImmediate(next));
    from = to;
  }
  if (end === "close") wire.close();
  if (end === "reset") wire.reset();
}

function wrongJson(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch {
    return `an answer that is not JSON: ${text.slice(0, 300)}`;
  }
}

/** Read as clients read it (WHATWG HTML, "Server-sent events"). */
function wrongStream(text: string): string | null {
  let data: string[] = [];
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (line.startsWith("data:")) data.push(line.slice("data:".length).replace(/^ /, ""));
    if (line !== "") continue;
    const event = data.join("\n");
    data = [];
    if (event.trim() !== "" && event !== "[DONE]" && wrongJson(event) !== null)
      return `an event that is not JSON: ${event.slice(0, 300)}`;
  }
  return null;
}

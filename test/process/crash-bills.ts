import { parseArgs } from "node:util";
import { decode, encode } from "gpt-tokenizer/encoding/o200k_base";
import { sse } from "../fakes/behaviours.ts";
import { startFakeHost } from "../fakes/host.ts";
import { chatText } from "../fakes/transcripts.ts";
import { until } from "../fakes/until.ts";
import { Folder, GatewayProcess, simpleConfig } from "./gateway.ts";

/**
 * Kills the real process again and again while it streams text of five kinds, and compares each bill with what the
 * client had received: no more than that, and at least three quarters of what it had received a second before.
 *
 *     bun run test/process/crash-bills.ts --kills 50
 */
export async function crashBills(kills: number): Promise<CrashBills> {
  const host = await startFakeHost((request) => {
    const kind = request.json().messages[0].content as string;
    const { events } = chatText(piecesOf(TEXTS[kind]!), { input: 10 });
    return sse(events, { before: () => Bun.sleep(EVENT_MS) });
  });
  const folder = new Folder(simpleConfig([host.port], UNLIMITED));
  const all: Bill[] = [];
  try {
    let gateway = await GatewayProcess.start(folder);
    const { key } = await gateway.keyWith(1_000);
    for (let kill = 0; kill < kills; kill++) {
      const { url } = gateway;
      const streams = await Promise.all(Object.keys(TEXTS).map((kind) => Received.open(url, key, kind)));
      await until(() => streams.every(({ pieces }) => pieces.length > 0));
      await Bun.sleep(1_000 + ((kill * 137) % 2_000));
      const killedMs = performance.now();
      await gateway.kill();
      for (const { ended } of streams) await ended;
      gateway = await GatewayProcess.start(folder);
      for (const stream of streams) {
        const { json } = await gateway.get(`/v1/receipts/${stream.receipt}`, key);
        all.push({
          kind: stream.kind,
          aliveMs: Math.round(killedMs - stream.pieces[0]!.atMs),
          state: json.state,
          billed: json.cost_usd === 0 ? 0 : json.tokens.output,
          delivered: stream.tokensUntil(Infinity),
          secondBefore: stream.tokensUntil(killedMs - 1_000),
        });
      }
    }
    await gateway.stop();
  } finally {
    await host.close();
    folder.remove();
  }
  return summary(kills, all);
}

interface Bill {
  readonly kind: string;
  /** From its first token to the kill. */
  readonly aliveMs: number;
  readonly state: string;
  /** Tokens. */
  readonly billed: number;
  readonly delivered: number;
  readonly secondBefore: number;
}

export interface CrashBills {
  readonly kills: number;
  readonly streams: number;
  /** Streams whose receipt does not have the state `recovered`. */
  readonly unrecovered: number;
  /** Streams that were billed for more than was delivered. */
  readonly tooMuch: number;
  /** Streams that were billed for less than three quarters of what was delivered a second before. */
  readonly tooLittle: readonly Bill[];
  /** The middle one of billed ÷ delivered. */
  readonly median: number;
}

function summary(kills: number, all: readonly Bill[]): CrashBills {
  const shares = all.map(({ billed, delivered }) => billed / delivered).sort((a, b) => a - b);
  return {
    kills,
    streams: all.length,
    unrecovered: all.filter(({ state }) => state !== "recovered").length,
    tooMuch: all.filter(({ billed, delivered }) => billed > delivered).length,
    tooLittle: all.filter(({ billed, secondBefore }) => {
      const least = 0.75 * secondBefore;
      // Less than that is written off.
      return least >= WRITE_OFF_TOKENS && billed < least;
    }),
    median: shares[Math.floor(shares.length / 2)]!,
  };
}

/** A stream, as its client gets it. */
class Received {
  readonly pieces: { readonly text: string; readonly atMs: number }[] = [];

  private constructor(
    readonly kind: string,
    readonly receipt: string,
    body: ReadableStream<Uint8Array>,
  ) {
    this.ended = this.read(body).catch(() => {});
  }

  /** Resolves when it breaks. */
  readonly ended: Promise<void>;

  static async open(url: string, key: string, kind: string): Promise<Received> {
    const messages = [{ role: "user", content: kind }];
    const { headers, body } = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "test/model", max_tokens: 8_000, stream: true, messages }),
    });
    return new Received(kind, headers.get("x-gateway-receipt")!, body!);
  }

  /** Counted as o200k does. */
  tokensUntil(ms: number): number {
    return encode(
      this.pieces
        .filter(({ atMs }) => atMs <= ms)
        .map(({ text }) => text)
        .join(""),
    ).length;
  }

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of body) {
      const events = (rest + decoder.decode(bytes, { stream: true })).split("\n\n");
      rest = events.pop()!;
      for (const event of events) {
        if (!event.startsWith("data: {")) continue;
        const text = JSON.parse(event.slice(6)).choices[0]?.delta.content;
        if (typeof text === "string" && text !== "") this.pieces.push({ text, atMs: performance.now() });
      }
    }
  }
}

/** Each token that is a character, or several, in an event of its own. */
export const piecesOf = (text: string): string[] =>
  encode(text)
    .map((token) => decode([token]))
    .filter((piece) => !piece.includes("\ufffd"));

/** Each is cut into tokens of o200k. */
export const TEXTS: Readonly<Record<string, string>> = {
  prose: "The keeper of the lighthouse wrote down every ship that passed, and its captain's name. ".repeat(
    120,
  ),
  chinese: "请把这份合同翻译成英文，并且说明每一条对卖方意味着什么。明天早上之前给我。".repeat(120),
  code: "export function sum(rows: readonly Row[]): number {\n  return rows.reduce((all, { cost }) => all + cost, 0);\n}\n".repeat(
    80,
  ),
  json: JSON.stringify(Array.from({ length: 400 }, (_, id) => ({ id, ok: id % 3 === 0, at: [id * 7, -id] }))),
  hex: Array.from({ length: 500 }, (_, n) => (n * 2_654_435_761 + 12_345).toString(16)).join(""),
};

const EVENT_MS = 5;
const WRITE_OFF_TOKENS = 50;
const UNLIMITED =
  "defaults: { accountless: { rpm_limit: null, tpm_limit: null, daily_limit_usd: null, monthly_limit_usd: null } }\n";

if (import.meta.main) {
  const { values } = parseArgs({ options: { kills: { type: "string", default: "10" } } });
  console.log(await crashBills(Number(values.kills)));
}

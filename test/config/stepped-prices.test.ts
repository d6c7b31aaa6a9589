import { expect, test } from "bun:test";
import { calcPrice } from "@pydantic/genai-prices";
import { RETENTIONS } from "../../src/catalog/price.ts";
import { promptOf, type Tokens } from "../../src/catalog/tokens.ts";
import { knownModels } from "../../src/config/model-catalogue.ts";
import { priceRow } from "../../src/config/price-settings.ts";
import { PRESETS } from "../../src/config/provider-presets.ts";
import { costOf, ratesFor } from "../../src/ledger/charge.ts";
import type { EpochMs } from "../../src/units/clock.ts";
import { rounds } from "../rounds.ts";
import { Random } from "../sim/random.ts";

/**
 * Random usages on both sides of every step and of every retention: what is charged equals what two other tables come
 * to, the one of the catalogue package, by its own calculation, and the price as a file has it, added up here.
 */
const AT = new Date("2026-11-21T12:00:00Z");
const STEPPED = PRESETS.filter(({ id }) => id !== "openrouter").flatMap((preset) =>
  knownModels(preset, AT.getTime() as EpochMs)
    .filter(({ price }) => price.above !== undefined)
    .map((model) => ({
      ...model,
      prices: preset.prices,
      known: calcPrice({}, model.wireName, { providerId: preset.prices, timestamp: AT })!.model_price,
    })),
);

/** “Prompts with more than 272K input tokens” (OpenAI): the package counts exactly so many as more. */
const DISPUTED = 272_000;
const DISPUTED_MODELS = [
  "gpt-5.4",
  "gpt-5.4-pro",
  "gpt-5.5",
  "gpt-5.5-pro",
  "gpt-5.6",
  "gpt-5.6-luna",
  "gpt-5.6-sol",
  "gpt-5.6-terra",
  "gpt-6-astra",
].map((name) => `openai/${name}`);

const ROUNDS = rounds(2_000, 100_000);

type Row = ReturnType<typeof priceRow>;
type Lines = Omit<Row, "above">;

/** As many nano-dollars, in exact decimals: the last step that the prompt exceeds prices all of it. */
function chargedBy({ above, ...base }: Row, tokens: Tokens): bigint {
  let lines: Lines = base;
  for (const { prompt, ...step } of above ?? []) if (promptOf(tokens) > prompt) lines = step;
  const nano = (usd: number) => BigInt(Math.round(usd * 1e9));
  const { cacheWrites = {} } = tokens;
  const { cache_write: write } = lines;
  const writeOf = (name: (typeof RETENTIONS)[number]): number => {
    if (typeof write === "object") return write[name] ?? Object.values(write)[0]!;
    return "cache_write_1h" in lines && name === "1h" ? (lines.cache_write_1h as number) : write;
  };
  const plain = typeof write === "object" ? Object.values(write)[0]! : write;
  let sum = 0n;
  let plainWrites = tokens.cacheWrite;
  for (const name of RETENTIONS) {
    const written = cacheWrites[name] ?? 0;
    plainWrites -= written;
    sum += BigInt(written) * nano(writeOf(name));
  }
  sum += BigInt(plainWrites) * nano(plain);
  sum += BigInt(tokens.input) * nano(lines.input) + BigInt(tokens.cacheRead) * nano(lines.cache_read);
  sum += BigInt(tokens.output) * nano(lines.output);
  return (sum + 999_999n) / 1_000_000n;
}

function usageNear(random: Random, step: number): Tokens {
  const near = [0, 1, -1, 2][random.below(4)]!;
  const prompt = random.below(3) === 0 ? step + near : random.below(2 * step);
  const cacheRead = random.below(prompt + 1);
  const cacheWrite = random.below(prompt - cacheRead + 1);
  const output = random.below(100_000);
  return {
    input: prompt - cacheRead - cacheWrite,
    cacheRead,
    cacheWrite,
    output,
    reasoning: random.below(output + 1),
  };
}

test(`${ROUNDS} random usages of ${STEPPED.length} models cost what the package and a file's rows come to`, () => {
  const random = new Random(7);
  const disputed = new Set<string>();
  expect(STEPPED.length).toBe(16);
  for (let round = 0; round < ROUNDS; round++) {
    const { id, wireName, price, prices, known } = STEPPED[round % STEPPED.length]!;
    const plain = usageNear(random, random.pick(price.above!).prompt);
    const kept = random.pick(["30m", "1h", "12h"] as const);
    const isSold = kept in (price.cacheWrites ?? {});
    const tokens = isSold ? { ...plain, cacheWrites: { [kept]: random.below(plain.cacheWrite + 1) } } : plain;
    const charged = costOf(tokens, ratesFor(price, tokens));
    expect([id, tokens, BigInt(charged)]).toEqual([id, tokens, chargedBy(priceRow(price), tokens)]);

    // What has no price of its own in the package is an input.
    const usage = {
      input_tokens: promptOf(plain),
      cache_read_tokens: "cache_read_mtok" in known ? plain.cacheRead : 0,
      cache_write_tokens: "cache_write_mtok" in known ? plain.cacheWrite : 0,
      output_tokens: plain.output,
    };
    const { total_price } = calcPrice(usage, wireName, { providerId: prices, timestamp: AT })!;
    const own = costOf(plain, ratesFor(price, plain));
    const differs = Math.abs(own - total_price * 1e9) >= 2;
    if (differs) disputed.add(`${id} at ${promptOf(plain)}`);
  }
  expect([...disputed].filter((one) => !one.endsWith(` at ${DISPUTED}`))).toEqual([]);
  expect([...disputed].map((one) => one.split(" ")[0]).sort()).toEqual(DISPUTED_MODELS);
}, 120_000);

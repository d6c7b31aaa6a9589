import {
  type Catalog,
  catalogOf,
  type Host,
  type Model,
  type SurfaceName,
} from "../../src/catalog/catalog.ts";
import type { Price } from "../../src/catalog/price.ts";
import type { GenerationSettings } from "../../src/generation/deps.ts";
import { ExpectedOutput, type HoldGrowth } from "../../src/generation/expected-output.ts";
import type { NanoPerMillion } from "../../src/units/usd.ts";
import { THOUGHTS_PER_SECOND } from "./hosts.ts";
import { DEFAULT_CEILING, MODELS_CEILING, type Tier } from "./limits.ts";
import type { Random } from "./random.ts";

/** What the simulated gateway has on offer, and how it is configured. */

const hostOf = (id: string, onDisconnect: Host["onDisconnect"], ...speaks: SurfaceName[]): Host => ({
  id,
  baseUrl: `http://${id}`,
  speaks,
  apiKey: null,
  auth: "bearer",
  headers: {},
  onDisconnect,
  ...(FREE_REFUSALS.has(id) ? { refusals: "free" } : {}),
  quirks: {},
});

/** Hosts that charge nothing for a refusal. */
export const FREE_REFUSALS: ReadonlySet<string> = new Set(["a", "e"]);

/** Whole nano-dollars a token, so that the auditor's arithmetic needs no rounding. */
const priceOf = (input: number, output: number): Price => {
  const perMillion = (nano: number) => (nano * 1_000_000) as NanoPerMillion;
  return {
    input: perMillion(input),
    output: perMillion(output),
    cacheRead: perMillion(input),
    cacheWrite: perMillion(input),
  };
};
const perToken = ({ input, output }: Price) => ({ input: input / 1_000_000, output: output / 1_000_000 });

/** Answers of `b` cannot be stopped, so requests to it hold their whole ceiling. */
const HOSTS = [
  hostOf("a", "cancel", "messages"),
  hostOf("b", "drain", "chat.completions"),
  hostOf("c", "cancel", "responses"),
  hostOf("d", "cancel", "chat.completions", "responses", "messages"),
];
const [FREE_1, FREE_2] = [
  hostOf("free_1", "cancel", "chat.completions"),
  hostOf("free_2", "drain", "messages"),
];
/** It serves a model that an automatic route goes on to. */
const SPARE = hostOf("e", "cancel", "messages");
export const FREE_HOSTS = [FREE_1.id, FREE_2.id];
const freeRoute = (host: Host, model: string) => ({ host, model, price: null, free: true });
const MODELS: readonly Model[] = [
  {
    id: "sim/cheap",
    prices: [priceOf(10, 20), priceOf(15, 30), priceOf(5, 40), priceOf(9, 9)],
    free: [freeRoute(FREE_1, "cheap"), freeRoute(FREE_2, "cheap")],
  },
  {
    id: "sim/dear",
    prices: [priceOf(40, 200), priceOf(80, 160)],
    free: [freeRoute(FREE_2, "dear")],
    hosts: [HOSTS[0]!, HOSTS[2]!],
  },
  { id: "sim/spare", prices: [priceOf(30, 60)], free: [], hosts: [SPARE] },
].map(({ id, prices, free, hosts = HOSTS }) => ({
  id,
  name: id,
  contextLength: 8_000,
  maxOutputTokens: MODELS_CEILING,
  price: prices[0]!,
  routes: [
    ...prices.map((price, index) => ({ host: hosts[index]!, model: id, price, free: false })),
    ...free,
  ],
}));

/** How holds grow here: hosts think slowly, and their answers are short. */
const GROWTH: HoldGrowth = {
  tokensPerSecond: THOUGHTS_PER_SECOND,
  aheadTokens: 40,
  stepTokens: 96,
  leastStepTokens: 6,
};
export class SlowlyThinking extends ExpectedOutput {
  constructor() {
    super(GROWTH);
  }

  override paceOf(): number {
    return GROWTH.tokensPerSecond;
  }
}

/**
 * What is held at once of an answer that may be long, at least: all who may be asked can be stopped, or those who
 * cannot were left out of the plan as more expensive or unverified.
 */
export const atOnceOf = (isStream: boolean): number | null =>
  isStream ? FIRST_TOKEN_S * GROWTH.tokensPerSecond + GROWTH.aheadTokens : null;

const FIRST_TOKEN_S = 5;

/** What clients ask for, and what the hosts that may be asked then cost. */
const NAMED_MODELS = MODELS.map(({ id, routes }) => ({
  id,
  prices: new Map(routes.flatMap(({ host, price }) => (price === null ? [] : [[host.id, perToken(price)]]))),
}));
const [CHEAP, EXPENSIVE, LAST] = NAMED_MODELS;
const SPARED = { id: "gateway/auto:spared", prices: new Map([...CHEAP!.prices, ...LAST!.prices]) };
export const PAID_MODELS = [CHEAP!, EXPENSIVE!, SPARED];
const forNothing = (...hosts: string[]) => new Map(hosts.map((host) => [host, { input: 0, output: 0 }]));
export const FREE_MODELS = [
  { id: "sim/cheap:free", prices: forNothing(FREE_1.id, FREE_2.id) },
  { id: "sim/dear:free", prices: forNothing(FREE_2.id) },
  { id: "gateway/auto:free", prices: forNothing(FREE_1.id, FREE_2.id) },
];

export const CATALOG: Catalog = catalogOf({
  models: new Map(MODELS.map((model) => [model.id, model])),
  auto: new Map([["spared", ["sim/cheap", "sim/spare"]]]),
  hosts: new Map([...HOSTS, SPARE, FREE_1, FREE_2].map((host) => [host.id, host])),
});

/** Where free requests come from: two IPv4 addresses, and two blocks of one wider IPv6 block. */
export const NETWORKS = [
  ["203.0.113.7"],
  ["203.0.113.8"],
  ["2001:db8:1:1::/64", "2001:db8:1::/48"],
  ["2001:db8:1:2::/64", "2001:db8:1::/48"],
];

/** Small enough to be reached. */
export const makeTier = (random: Random): Tier => ({
  perDay: random.pick([2, 4, 8]),
  accountlessPerDay: random.pick([1, 2, 5]),
  rpm: random.pick([null, 1, 3]),
});

export const SETTINGS: GenerationSettings = {
  baseUrl: "http://gateway",
  dashboardUrl: "http://gateway/dashboard",
  contact: null,
  attempts: {
    firstTokenMs: FIRST_TOKEN_S * 1_000,
    maxHosts: 3,
    hedgeMs: 400,
    chunkGapMs: 120_000,
    totalMs: 1_200_000,
  },
  order: "price",
  chunkGapMs: 10_000,
  keepaliveMs: 2_000,
  totalMs: 120_000,
  writeOffTokens: 50,
  defaultMaxOutputTokens: DEFAULT_CEILING,
  openTierRpm: null,
  sellsCredit: false,
};

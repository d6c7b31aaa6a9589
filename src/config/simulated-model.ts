import type { Host, Model } from "../catalog/catalog.ts";
import { SIMULATED_HOST_ID } from "../catalog/model-name.ts";
import type { Price } from "../catalog/price.ts";
import { SIMULATED_LIMITS, SIMULATED_MODEL } from "../hosts/simulated/host.ts";
import { NANO_PER_USD, type NanoPerMillion } from "../units/usd.ts";

/** A route may name this host without the file listing it. */
export const SIMULATED_MODEL_ID = `${SIMULATED_HOST_ID}/${SIMULATED_MODEL}`;
/**
 * A host whose `base_url` says this is the simulated one, whatever its id: several of them can be distinguished
 * in receipts.
 */
export const SIMULATED_ADDRESS = "simulated";

export const simulatedHost = (baseUrl: string): Host => ({
  id: SIMULATED_HOST_ID,
  baseUrl,
  speaks: ["chat.completions", "responses", "messages"],
  apiKey: null,
  auth: "bearer",
  headers: {},
  onDisconnect: "cancel",
  quirks: {},
});

/**
 * `sim/echo`: a free route, so that a first request needs neither a provider nor credit. `sold` adds a priced
 * one, so that credit, caps and receipts can be tried offline; where real models are sold, an echo must not
 * stand among them.
 */
export const simulatedModel = (host: Host, sold: boolean): Model => {
  const price = sold ? PRICE : null;
  const free = { host, model: SIMULATED_MODEL, price: null, free: true };
  return {
    id: SIMULATED_MODEL_ID,
    name: "Simulated echo",
    contextLength: SIMULATED_LIMITS.contextLength,
    maxOutputTokens: SIMULATED_LIMITS.maxOutputTokens,
    price,
    routes: sold ? [free, { host, model: SIMULATED_MODEL, price, free: false }] : [free],
  };
};

const perMillion = (usd: number): NanoPerMillion => (usd * NANO_PER_USD) as NanoPerMillion;

/** What a small model costs, so that a request's cost looks like one. */
const PRICE: Price = {
  input: perMillion(0.1),
  output: perMillion(0.4),
  cacheRead: perMillion(0.1),
  cacheWrite: perMillion(0.1),
};

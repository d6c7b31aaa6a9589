import type { Host, Model } from "../catalog/catalog.ts";
import { SIMULATED_LIMITS, SIMULATED_MODEL } from "../hosts/simulated.ts";

/** A route may name this host without the file listing it. */
const SIMULATED_HOST_ID = "sim";

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

/** `sim/echo`: one free route, so that a first request needs neither a provider nor credit. */
export const simulatedModel = (host: Host): Model => ({
  id: `${SIMULATED_HOST_ID}/${SIMULATED_MODEL}`,
  name: "Simulated echo",
  contextLength: SIMULATED_LIMITS.contextLength,
  maxOutputTokens: SIMULATED_LIMITS.maxOutputTokens,
  price: null,
  routes: [{ host, model: SIMULATED_MODEL, price: null, free: true }],
});

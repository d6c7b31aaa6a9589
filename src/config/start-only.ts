import { type Config, hostAndPort } from "./config.ts";

/** The fields that differ although only a start reads them, by their names in the file. */
export function startOnlyChanges(started: Config, now: Config): string[] {
  const before = startOnly(started);
  const after = startOnly(now);
  return Object.keys(before).filter((field) => before[field] !== after[field]);
}

const startOnly = ({
  durability,
  metrics,
  payments,
  store,
  websocketMessageBytes,
  workers,
}: Config): Record<string, unknown> => ({
  durability,
  metrics: metrics === null ? null : hostAndPort(metrics),
  // Payments under way are watched by what they were begun with.
  payments: JSON.stringify(payments),
  journal: store.kind === "postgres" ? store.journal : "disk",
  store: store.kind === "postgres" ? store.url : "sqlite",
  websocket_message_bytes: websocketMessageBytes,
  workers,
});

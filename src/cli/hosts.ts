import type { Command } from "@commander-js/extra-typings";
import type { HostAnswer } from "../api/admin.ts";
import { limitInForce } from "../api/host-limit.ts";
import type { List } from "../api/schema.ts";
import { asOperator } from "./actions.ts";
import { connected } from "./arguments.ts";
import { type CommandContext, printable, tableOf } from "./console.ts";

export function addHosts(gateway: Command, context: CommandContext): void {
  connected(gateway, "hosts")
    .description("Show hosts with their health, as the gateway sees them.")
    .action(
      asOperator(context, async (client) => {
        const { data } = await client.get<List<HostAnswer>>("/admin/hosts");
        return [data, [...tableOf(COLUMNS, data), ...data.flatMap(failures), ...data.flatMap(unusableKeys)]];
      }),
    );
}

const COLUMNS = {
  host: "id",
  state: "state",
  "in flight": "in_flight",
  limit: mostAtOnce,
  waiting: "waiting",
  routes: usableRoutes,
  speaks: ({ speaks }: HostAnswer) => speaks.join(", "),
  key: keysOf,
  address: "base_url",
} as const;

/** For each of its models that has failed: how often, and the last reason. */
function failures({ id, routes }: HostAnswer): string[] {
  const models = new Map(routes.map((route) => [route.host_model, route]));
  return [...models.values()].flatMap(({ host_model, served, failed, last_failure }) =>
    last_failure === null
      ? []
      : [
          `${id}, ${printable(host_model)}: ${failed} of ${served + failed} failed, last at ${last_failure.at}: ${printable(last_failure.detail)}`,
        ],
  );
}

function keysOf({ has_api_key, keys }: HostAnswer): string {
  if (keys.length === 0) return has_api_key ? "yes" : "no";
  return `${keys.filter(({ state }) => state === "usable").length} of ${keys.length} usable`;
}

function unusableKeys({ id, keys }: HostAnswer): string[] {
  return keys.flatMap(({ name, state, refused }) =>
    state === "usable"
      ? []
      : [
          refused === null
            ? `${id}, key ${printable(name)}: resting, at a limit of the host`
            : `${id}, key ${printable(name)}: refused by the host at ${refused.at}: ${printable(refused.detail)}`,
        ],
  );
}

function mostAtOnce(host: HostAnswer): string {
  const limit = limitInForce(host);
  if (limit === null) return "no limit";
  return host.cut_workers > 0 ? `${limit}, overloaded lately` : `${limit}`;
}

function usableRoutes({ routes }: HostAnswer): string {
  const usable = routes.filter((route) => route.usable && route.resting_workers === 0).length;
  return usable === routes.length ? `${usable}` : `${usable} of ${routes.length}`;
}

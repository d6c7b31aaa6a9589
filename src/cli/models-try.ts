import { type Catalog, keyTextsOf, type Route, type SurfaceName } from "../catalog/catalog.ts";
import { formatProblems } from "../config/problem.ts";
import { Destinations } from "../hosts/destination.ts";
import { Http1Transport } from "../hosts/http1/transport.ts";
import { checkRoute, type RouteCheck } from "../hosts/route-check.ts";
import { systemClock } from "../units/clock.ts";
import { inForce } from "./applied-lists.ts";
import { isSimulated, readConfiguration } from "./config.ts";
import { type CommandContext, printable } from "./console.ts";
import { CommandFailure, EXIT } from "./failure.ts";
import { type Finding, failing, ok, showFindings, warning } from "./finding.ts";
import { inBatches, withProgress } from "./progress.ts";

export interface TrialOptions {
  readonly json: boolean;
  /** Ids of hosts; absent: all. */
  readonly host?: readonly string[] | undefined;
}

/**
 * Asks each model once at each host that it has a route to, in each language that the host is said to speak:
 * whether a customer would be served. No gateway has to run. The operator pays the hosts a few tokens for
 * each.
 */
export async function tryModels(
  ids: readonly string[],
  options: TrialOptions,
  context: CommandContext,
): Promise<void> {
  const found = await readConfiguration(undefined, context);
  if (Array.isArray(found)) throw new CommandFailure(EXIT.found, formatProblems(found));
  const { config, unread } = await inForce(found.config, context);
  if (unread !== null) context.err(`Models of applied lists are left out: ${unread}\n`);
  const trials = trialsOf(config.catalog, ids, options.host);
  if (trials.length === 0 && ids.length === 0 && options.host === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      "there is nothing to try: no model has a route to a host other than the simulated one",
      "Set a provider's key in the environment, such as OPENAI_API_KEY, or list hosts in gateway.yaml.",
    );
  }
  if (trials.length === 0) {
    throw new CommandFailure(
      EXIT.usage,
      "no such model has a route to such a host",
      "`gateway config check` says what is configured; the simulated host needs no trial.",
    );
  }
  const transport = new Http1Transport({ clock: systemClock, onFault: () => {} });
  const destinations = new Destinations();
  const tools = { transport, destinations, clock: systemClock };
  const findings = await withProgress(context, (progress) =>
    inBatches(trials, MAX_AT_ONCE, "asking models", progress, async (trial) => [
      findingOf(trial, await checkRoute(trial.route, trial.spoken, tools)),
    ]),
  );
  transport.close();
  showFindings(findings, "trial", options, context);
}

/** Few, because hosts charge for it and would call more a burst. */
const MAX_AT_ONCE = 4;

interface RouteTrial {
  readonly model: string;
  readonly route: Route;
  readonly spoken: SurfaceName;
}

/** A model that a host serves under two ids is asked once. */
function trialsOf(
  { models }: Catalog,
  ids: readonly string[],
  hosts: readonly string[] | undefined,
): RouteTrial[] {
  const found = new Map<string, RouteTrial>();
  for (const { id, routes } of models.values()) {
    if (ids.length > 0 && !ids.includes(id)) continue;
    for (const route of routes) {
      const { host, model } = route;
      if (isSimulated(host) || (hosts !== undefined && !hosts.includes(host.id))) continue;
      for (const spoken of host.speaks) {
        const name = `${host.id}\n${model}\n${spoken}`;
        if (!found.has(name)) found.set(name, { model: id, route, spoken });
      }
    }
  }
  return [...found.values()];
}

function findingOf(
  { model, route: { host, model: hostModel }, spoken }: RouteTrial,
  check: RouteCheck,
): Finding {
  const name = `${model} at ${host.id}, ${spoken}`;
  switch (check.kind) {
    case "whole":
      return ok(name, `answers whole in ${Math.round(check.ms)} ms`);
    case "streamed": {
      const { firstTokenMs, usage } = check;
      const first =
        firstTokenMs === null ? "no token of its answer" : `first token in ${Math.round(firstTokenMs)} ms`;
      if (usage) return ok(name, `streams, ${first}`);
      return warning(
        name,
        `streams, ${first}, but reports no usage`,
        "Its tokens are counted by the gateway, which may differ from what the host charges.",
      );
    }
    case "unstreamed":
      return warning(
        name,
        "answers whole although it was asked to stream",
        "Set `quirks: { no_stream: true }` on the host or the route, so that hosts that stream are preferred, and the host receives the limit at which to stop.",
      );
    case "failed": {
      const message = printable(
        keyTextsOf(host).reduce((text, key) => text.replaceAll(key, "…"), check.message),
      );
      const detail = check.status === null ? message : `answers ${check.status}: ${message}`;
      return failing(name, detail, adviceOf(check, hostModel));
    }
  }
}

/** For what most often is the matter with a row. */
function adviceOf(
  { status, message }: Extract<RouteCheck, { kind: "failed" }>,
  model: string,
): string | null {
  if (status === 401 || status === 403)
    return "Check the host's `api_key` and `auth`, and what the key may call.";
  if (status === 404)
    return `Check \`model\` (${printable(model)}), \`speaks\`, and that \`base_url\` ends where the endpoint's path begins.`;
  if (status === 402 || status === 429) return "Its credit, quota or rate limit is used up.";
  // What it says in an answer that it began is no verdict on the request.
  if (status !== 400 && status !== 422) return null;
  const quirk = ADVISED.find(([sign]) => sign.test(message))?.[1];
  return quirk === undefined ? null : `Try \`quirks: { ${quirk}: true }\` on the host or the route.`;
}

const ADVISED: readonly (readonly [RegExp, string])[] = [
  [/max_completion_tokens/, "max_completion_tokens"],
  [/stream_options|include_usage/, "no_stream_options"],
  [/\bstream/i, "no_stream"],
];

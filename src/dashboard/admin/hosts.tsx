import type { HostAnswer, RouteAnswer } from "../../api/admin.ts";
import { limitInForce } from "../../api/host-limit.ts";
import { count, milliseconds, moment } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { Head } from "../parts/frame.tsx";
import { Empty, Listed } from "../parts/notice.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { useList } from "../resource.ts";
import { useOperator } from "./operator.ts";

/** Every host, how it does now, and what is served by it. */
export function Hosts() {
  const hosts = useList<HostAnswer>(useOperator(), "admin/hosts");
  return (
    <>
      <Head
        title="Hosts"
        lead="Times and rates are medians of the last customers' streams; attempts are counted since the gateway started."
      >
        <Button label="Refresh" onClick={hosts.reload} />
      </Head>
      <Listed
        of={hosts}
        empty={
          <Empty title="No hosts are configured">
            Name one under <code>hosts</code> in the configuration, or set a provider's key in the
            environment, such as OPENAI_API_KEY, and start again.
          </Empty>
        }
      >
        {(rows) => rows.map((host) => <Host key={host.id} of={host} />)}
      </Listed>
    </>
  );
}

const STATES = {
  available: ["good", "available"],
  degraded: ["warn", "available, except for some models"],
  unproven: ["warn", "being tried again"],
  resting: ["bad", "resting after failures"],
  paused: ["warn", "paused in the configuration"],
} as const satisfies Record<HostAnswer["state"], readonly [string, string]>;

function Host({ of: host }: { of: HostAnswer }) {
  const { id, base_url, speaks, has_api_key, state, routes } = host;
  const [tone, words] = STATES[state];
  return (
    <section class="card" aria-label={id}>
      <div class="head">
        <div>
          <h2>{id}</h2>
          <p class="soft small">
            <span class="mono">{base_url}</span> · {speaks.join(", ")}
            {!has_api_key && " · no key"}
          </p>
          <Load of={host} />
        </div>
        <span class={`tag ${tone}-tag`}>{words}</span>
      </div>
      {routes.length === 0 ? (
        <p class="soft">
          {state === "paused" ? "This host is given no requests." : "No model has a route to this host."}
        </p>
      ) : (
        <Table
          of={routes}
          by={({ model, host_model, free }) => `${model} ${host_model} ${free}`}
          columns={ROUTES}
        />
      )}
      {routes.some(isUnverified) && (
        <p class="soft small">
          Free, unverified: the host has not yet answered the gateway's own question at this route free of
          charge, or has failed or charged since. The Open Tier leaves the route out until it answers; the
          gateway asks again every half hour, and at a reload.
        </p>
      )}
    </section>
  );
}

const isUnverified = ({ usable, free, verified_free }: RouteAnswer): boolean =>
  usable && free && !verified_free;

/**
 * What it has to do now, and how much of it at once; a host that was overloaded is given less for a while.
 */
function Load({ of: host }: { of: HostAnswer }) {
  const { in_flight, waiting, max_concurrent, cut_workers } = host;
  const isCut = cut_workers > 0;
  const limit = limitInForce(host);
  const most = limit === null ? "" : ` of at most ${count(limit)}`;
  const allowed = isCut && max_concurrent !== null ? ` · ${count(max_concurrent)} allowed` : "";
  const line = waiting > 0 ? ` · ${count(waiting)} waiting` : "";
  return (
    <p class="small">
      {`${count(in_flight)} in flight${most}${allowed}${line} `}
      {isCut && <span class="tag warn-tag">recently overloaded</span>}
    </p>
  );
}

const ROUTES: readonly Column<RouteAnswer>[] = [
  [
    "Model",
    "",
    ({ model, failed, served, last_failure }) => (
      <>
        {model}
        {last_failure !== null && (
          <div class="soft small">
            {`${count(failed)} of ${count(served + failed)} failed, last ${moment(last_failure.at)}: ${last_failure.detail}`}
          </div>
        )}
      </>
    ),
  ],
  ["Host's model id", "soft wide-only", ({ host_model }) => host_model],
  ["First token", "end", ({ first_token_ms: ms }) => (ms === null ? "–" : milliseconds(ms))],
  [
    "Tokens/s",
    "end wide-only",
    ({ tokens_per_second: rate }) => (rate === null ? "–" : count(Math.round(rate))),
  ],
  ["State", "end", (route) => <RouteState of={route} />],
];

function RouteState({ of }: { of: RouteAnswer }) {
  const [tone, words] = routeState(of);
  return <span class={`tag ${tone}-tag`}>{words}</span>;
}

function routeState({ usable, resting_workers, unproven_workers, free, verified_free, priced }: RouteAnswer) {
  if (!usable) return ["bad", "resting"];
  if (resting_workers > 0)
    return ["warn", `resting at ${resting_workers} ${resting_workers === 1 ? "worker" : "workers"}`];
  if (unproven_workers > 0) return ["warn", "being tried again"];
  if (free) return verified_free ? ["good", "free"] : ["warn", "free, unverified"];
  return priced ? ["good", "usable"] : ["warn", "no price"];
}

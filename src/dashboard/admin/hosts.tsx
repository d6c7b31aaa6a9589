import { useState } from "preact/hooks";
import type { HostAnswer, RouteAnswer } from "../../api/admin.ts";
import { limitInForce } from "../../api/host-limit.ts";
import { count, milliseconds, moment, second } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { TextField, useField } from "../parts/field.tsx";
import { type Column, Table } from "../parts/list.tsx";
import { Empty, Head, Listed } from "../parts/page.tsx";
import { useList, useLive } from "../resource.ts";

/** Every host, how it does now, and what is served by it. */
export function Hosts() {
  const hosts = useList<HostAnswer>("admin/hosts");
  const search = useField("");
  useLive(hosts);
  return (
    <>
      <Head
        title="Hosts"
        lead="Times and rates are medians of recent streams. Attempts are counted since the gateway started."
      >
        <Button label="Refresh" onClick={hosts.reload} />
      </Head>
      <Listed
        of={hosts}
        empty={
          <Empty title="No hosts are configured">
            Add one under <code>hosts</code> in the configuration, or set a provider's key in the environment,
            such as OPENAI_API_KEY, and restart.
          </Empty>
        }
      >
        {(rows) => (
          <>
            {rows.flatMap(({ routes }) => routes).length > SHOWN_ROUTES && (
              <TextField label="Search" type="search" placeholder="Host or model" {...search} />
            )}
            {matching(rows, search.value).map((host) => (
              <Host key={host.id} of={host} isSearched={search.value.trim() !== ""} />
            ))}
          </>
        )}
      </Listed>
    </>
  );
}

/** Routes of a host that are shown before somebody wants all. */
const SHOWN_ROUTES = 8;

/** What needs somebody comes first: hosts that fail, and of a host the routes that fail. */
function matching(hosts: readonly HostAnswer[], search: string): HostAnswer[] {
  const searched = search.trim().toLowerCase();
  return hosts
    .flatMap((host) => {
      const isWhole = host.id.toLowerCase().includes(searched);
      const routes = host.routes.filter(
        ({ model, host_model }) => isWhole || `${model} ${host_model}`.toLowerCase().includes(searched),
      );
      if (!isWhole && routes.length === 0) return [];
      return [{ ...host, routes: routes.toSorted((a, b) => urgency(b) - urgency(a)) }];
    })
    .toSorted((a, b) => URGENCY.indexOf(b.state) - URGENCY.indexOf(a.state));
}

const urgency = ({ usable, unproven_workers, failed, served, last_failure }: RouteAnswer): number => {
  if (!usable) return 4;
  if (unproven_workers > 0 && failed > 0) return 3;
  if (last_failure !== null) return 2;
  return served > 0 ? 1 : 0;
};

/** With the tone and the words of its tag; the most urgent is the last. */
const STATES = {
  unused: ["plain", "not used yet"],
  paused: ["warn", "paused in the configuration"],
  available: ["good", "available"],
  degraded: ["warn", "available, except for some models"],
  unproven: ["warn", "waiting for a request after failures"],
  resting: ["bad", "resting after failures"],
} as const satisfies Record<HostAnswer["state"], readonly [string, string]>;

const URGENCY = Object.keys(STATES);

function Host({ of: host, isSearched }: { of: HostAnswer; isSearched: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const { id, base_url, speaks, has_api_key, keys, state, failing_since, routes } = host;
  const [tone, words] = STATES[state];
  return (
    <section class="card" aria-label={id}>
      <div class="head">
        <div>
          <h2>{id}</h2>
          <p class="soft small">
            <span class="mono">{base_url}</span> · {speaks.join(", ")}
            {!has_api_key && " · no key"}
            {keys.map(({ name, state, refused }) => (
              <span key={name} title={refused?.detail}>
                {` · key ${name}`}
                {state !== "usable" && ` (${state === "retired" ? "refused by the host" : "resting"})`}
              </span>
            ))}
          </p>
          <Load of={host} />
        </div>
        <div class="end">
          <span class={`tag ${tone}-tag`}>{words}</span>
          {failing_since !== null && <div class="soft small">failing since {second(failing_since)}</div>}
        </div>
      </div>
      {routes.length === 0 ? (
        <p class="soft">
          {state === "paused" ? "This host gets no new requests." : "No model has a route to this host."}
        </p>
      ) : (
        <Table
          of={isOpen || isSearched ? routes : routes.slice(0, SHOWN_ROUTES)}
          by={({ model, host_model, free }) => `${model} ${host_model} ${free}`}
          columns={ROUTES}
        />
      )}
      {routes.length > SHOWN_ROUTES && !isSearched && (
        <Button
          label={isOpen ? "Show fewer" : `Show all ${count(routes.length)} models`}
          about={`of ${id}`}
          variant="link"
          onClick={() => setOpen(!isOpen)}
        />
      )}
      {routes.some(isUnverified) && (
        <p class="soft small">
          Free, unverified: this route has not yet answered the gateway's probe free of charge, or has failed
          or charged since. The Open Tier does not use it until a probe succeeds; the gateway probes every
          half hour, and after a reload.
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
  const most = limit === null ? " slots in use, no limit" : ` of ${count(limit)} slots in use`;
  const allowed = isCut && max_concurrent !== null ? ` · ${count(max_concurrent)} allowed` : "";
  const line = waiting > 0 ? ` · ${count(waiting)} waiting` : "";
  return (
    <p class="small">
      {`${count(in_flight)}${most}${allowed}${line} `}
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
  ["Host's model id", "soft", ({ host_model }) => host_model],
  ["First token", "end", ({ first_token_ms: ms }) => (ms === null ? "–" : milliseconds(ms))],
  ["Tokens/s", "end", ({ tokens_per_second: rate }) => (rate === null ? "–" : count(Math.round(rate)))],
  ["State", "end", (route) => <RouteState of={route} />],
];

function RouteState({ of }: { of: RouteAnswer }) {
  const [tone, words] = routeState(of);
  return <span class={`tag ${tone}-tag`}>{words}</span>;
}

function routeState(of: RouteAnswer) {
  const { usable, resting_workers, unproven_workers, free, verified_free, priced, served, failed } = of;
  if (!usable) return ["bad", "resting"];
  if (resting_workers > 0)
    return ["warn", `resting at ${resting_workers} ${resting_workers === 1 ? "worker" : "workers"}`];
  if (unproven_workers > 0)
    return failed > 0
      ? ["warn", "waiting for a request after failures"]
      : ["plain", "not used since its host failed"];
  if (free) return verified_free ? ["good", "free"] : ["warn", "free, unverified"];
  if (!priced) return ["warn", "no price"];
  return served + failed === 0 ? ["plain", "not used yet"] : ["good", "usable"];
}

import type { HostAnswer, RouteAnswer } from "../../api/admin.ts";
import type { List } from "../../api/answers.ts";
import { limitInForce } from "../../api/host-limit.ts";
import { count, milliseconds, moment } from "../format.ts";
import { Head } from "../parts/frame.tsx";
import { Empty, Loaded } from "../parts/notice.tsx";
import { Table } from "../parts/table.tsx";
import { useResource } from "../resource.ts";
import { useOperator } from "./operator.ts";

/** Every host, how it does now, and what is served by it. */
export function Hosts() {
  const api = useOperator();
  const hosts = useResource(() => api.get<List<HostAnswer>>("admin/hosts"), [api]);
  return (
    <>
      <Head
        title="Hosts"
        lead="Times and rates are medians of the last customers' streams; attempts are counted since the gateway started."
      >
        <button type="button" class="quiet" onClick={hosts.reload}>
          Refresh
        </button>
      </Head>
      <Loaded of={hosts}>
        {({ data }) => (
          <>
            {data.length === 0 && (
              <Empty title="No hosts are configured">
                <p class="soft">
                  Name one under <code>hosts</code> in the configuration, or set a provider's key in the
                  environment, such as OPENAI_API_KEY, and start again.
                </p>
              </Empty>
            )}
            {data.map((host) => (
              <Host key={host.id} of={host} />
            ))}
          </>
        )}
      </Loaded>
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
          columns={[
            "Model",
            ["Host's model id", "wide-only"],
            ["First token", "end"],
            ["Tokens/s", "end wide-only"],
            ["State", "end"],
          ]}
        >
          {routes.map(routeRow)}
        </Table>
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

const routeRow = (route: RouteAnswer) => (
  <tr key={`${route.model} ${route.host_model} ${route.free}`}>
    <td>
      {route.model}
      {route.last_failure !== null && (
        <div class="soft small">
          {`${count(route.failed)} of ${count(route.served + route.failed)} failed, last ${moment(route.last_failure.at)}: ${route.last_failure.detail}`}
        </div>
      )}
    </td>
    <td class="soft wide-only">{route.host_model}</td>
    <td class="end">{route.first_token_ms === null ? "–" : milliseconds(route.first_token_ms)}</td>
    <td class="end wide-only">
      {route.tokens_per_second === null ? "–" : count(Math.round(route.tokens_per_second))}
    </td>
    <td class="end">
      <RouteState of={route} />
    </td>
  </tr>
);

function RouteState({ of: route }: { of: RouteAnswer }) {
  const { usable, resting_workers, unproven_workers, free, verified_free, priced } = route;
  if (!usable) return <span class="tag bad-tag">resting</span>;
  if (resting_workers > 0)
    return (
      <span class="tag warn-tag">
        resting at {resting_workers} {resting_workers === 1 ? "worker" : "workers"}
      </span>
    );
  if (unproven_workers > 0) return <span class="tag warn-tag">being tried again</span>;
  if (free) {
    return (
      <span class={`tag ${verified_free ? "good" : "warn"}-tag`}>
        {verified_free ? "free" : "free, unverified"}
      </span>
    );
  }
  return priced ? <span class="tag good-tag">usable</span> : <span class="tag warn-tag">no price</span>;
}

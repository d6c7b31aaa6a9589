import type { ComponentProps } from "preact";
import type { HostAnswer } from "../../api/admin.ts";
import type { OwnedReceiptAnswer } from "../../api/receipts.ts";
import type { OverviewAnswer } from "../../api/usage.ts";
import { count, milliseconds, moment, usd, usdColumn } from "../format.ts";
import { BarChart } from "../parts/bar-chart.tsx";
import { Figure, Head, Listed, Loaded, Section } from "../parts/page.tsx";
import { ReceiptTable } from "../parts/receipt-table.tsx";
import { barsOf, Periods } from "../parts/usage-bars.tsx";
import { useGet, useList, useLive } from "../resource.ts";
import { useFilters } from "../route.ts";
import { FindAny } from "./find.tsx";

/** How the gateway does now, and whether somebody is needed. */
export function Overview() {
  const { filters, field } = useFilters(["period"], { period: "day" });
  const overview = useGet<OverviewAnswer>("admin/overview", filters);
  const hosts = useList<HostAnswer>("admin/hosts");
  const failures = useList<OwnedReceiptAnswer>("admin/receipts", { state: "failed", limit: LATEST });
  useLive(overview);
  useLive(hosts);
  useLive(failures);
  return (
    <>
      <Head title="Overview" lead="Everybody's requests. The figures update by themselves.">
        <Periods {...field("period")} />
      </Head>
      <FindAny />
      <Loaded of={overview}>{(data) => <Figures of={data} hosts={hosts.data ?? []} />}</Loaded>
      <Section title="Latest failures">
        <Listed of={failures} empty={<p class="soft">No request has failed lately.</p>}>
          {(rows) => (
            <>
              <ReceiptTable rows={rows} keysAt={null} />
              <p>
                <a href="#/requests?state=failed">All failed requests</a>
              </p>
            </>
          )}
        </Listed>
      </Section>
    </>
  );
}

const LATEST = "8";

function Figures({ of, hosts }: { of: OverviewAnswer; hosts: readonly HostAnswer[] }) {
  const { stretches } = of;
  const sum = (measure: (stretch: Stretch) => number) =>
    stretches.reduce((total, stretch) => total + measure(stretch), 0);
  const requests = sum((stretch) => stretch.requests);
  const failed = sum((stretch) => stretch.failed);
  const troubled = hosts.filter(
    ({ state }) => state === "resting" || state === "unproven" || state === "degraded",
  );
  const latest = stretches.at(-1)?.first_token_ms.p50 ?? null;
  return (
    <>
      <div class="grid-3">
        <Figure label="Requests" value={count(requests)} hint={`${count(inFlight(hosts))} in flight now`} />
        <Figure
          label="Failed"
          value={requests === 0 ? "–" : `${((failed / requests) * 100).toFixed(1)} %`}
          hint={`${count(failed)} of ${count(requests)}`}
        />
        <Figure label="Spend" value={usd(sum((stretch) => stretch.cost_usd))} hint="charged to balances" />
        <Figure
          label="First token"
          value={latest === null ? "–" : milliseconds(latest)}
          hint="median, latest in the period"
        />
        <Figure
          label="Hosts"
          value={`${count(troubled.length)} failing`}
          href="#/hosts"
          hint={
            troubled.length === 0 ? `${count(hosts.length)} configured` : troubled.map(sinceWhen).join(", ")
          }
        />
      </div>
      {of.truncated && <p class="hint">Only the newest 50,000 requests are counted.</p>}
      <section class="card charts" aria-label="Over time">
        <div class="grid-2">
          <Chart title="Requests" of={of} format={count} parts={REQUESTS} />
          <Chart title="Tokens" of={of} format={count} parts={TOKENS} />
          <Chart title="Spend" of={of} format={usd} axis={usdColumn} parts={SPEND} />
          <Chart
            title="First token, 95th percentile"
            of={of}
            format={milliseconds}
            parts={FIRST_TOKEN}
            isMost
          />
        </div>
      </section>
    </>
  );
}

const sinceWhen = ({ id, failing_since }: HostAnswer): string =>
  failing_since === null ? id : `${id} since ${moment(failing_since)}`;

type Stretch = OverviewAnswer["stretches"][number];
type Parts = Readonly<Record<string, (stretch: Stretch) => number>>;

const REQUESTS: Parts = {
  answered: ({ requests, failed }) => requests - failed,
  failed: ({ failed }) => failed,
};
const TOKENS: Parts = {
  input: ({ input_tokens }) => input_tokens,
  output: ({ output_tokens }) => output_tokens,
};
const SPEND: Parts = { charged: ({ cost_usd }) => cost_usd };
const FIRST_TOKEN: Parts = { "95th percentile": ({ first_token_ms: { p95 } }) => p95 ?? 0 };

const inFlight = (hosts: readonly HostAnswer[]): number =>
  hosts.reduce((sum, { in_flight }) => sum + in_flight, 0);

function Chart({ of, parts, ...chart }: ChartProps) {
  const series = Object.keys(parts);
  const bars = barsOf(of, series.length, (values, stretch) => {
    for (const [index, part] of Object.values(parts).entries()) values[index]! += part(stretch);
  });
  return <BarChart bars={bars} series={series} {...chart} />;
}

interface ChartProps extends Omit<ComponentProps<typeof BarChart>, "bars" | "series"> {
  readonly of: OverviewAnswer;
  readonly parts: Parts;
}

import type { HostAnswer } from "../../api/admin.ts";
import type { List } from "../../api/answers.ts";
import type { OwnedReceiptAnswer } from "../../api/receipts.ts";
import type { OverviewAnswer, Period } from "../../api/usage.ts";
import { count, milliseconds, moment, usd, usdColumn } from "../format.ts";
import { BarChart } from "../parts/bar-chart.tsx";
import { Figure } from "../parts/figure.tsx";
import { Head, Section } from "../parts/frame.tsx";
import { Loaded } from "../parts/notice.tsx";
import { ReceiptTable } from "../parts/receipt-table.tsx";
import { endOf, labelOf, Periods } from "../parts/usage-bars.tsx";
import { useGet, useLive, useResource } from "../resource.ts";
import { useQuery } from "../route.ts";
import { Find } from "./find.tsx";
import { useOperator } from "./operator.ts";

/** How the gateway does now, and whether somebody is needed. */
export function Overview() {
  const api = useOperator();
  const [query, setQuery] = useQuery(["period"]);
  const period = (query.period || "day") as Period;
  const overview = useGet<OverviewAnswer>(api, `admin/overview?period=${period}`);
  const hosts = useGet<List<HostAnswer>>(api, "admin/hosts");
  const failures = useResource(
    async () => (await api.get<List<OwnedReceiptAnswer>>(`admin/receipts?state=failed&limit=${LATEST}`)).data,
    [api],
  );
  useLive(overview);
  useLive(hosts);
  useLive(failures);
  return (
    <>
      <Head title="Overview" lead="Everybody's requests. The figures update by themselves.">
        <Periods value={period} onValue={(value) => setQuery({ period: value })} />
      </Head>
      <Find />
      <Loaded of={overview}>{(data) => <Figures of={data} hosts={hosts.data?.data ?? []} />}</Loaded>
      <Section title="Latest failures">
        <Loaded of={failures}>
          {(rows) =>
            rows.length === 0 ? (
              <p class="soft">No request has failed lately.</p>
            ) : (
              <>
                <ReceiptTable rows={rows} keyNames={NO_NAMES} />
                <p>
                  <a href="#/requests?state=failed">All failed requests</a>
                </p>
              </>
            )
          }
        </Loaded>
      </Section>
    </>
  );
}

const LATEST = 8;
const NO_NAMES: ReadonlyMap<string, string> = new Map();

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
        <div class="card figure">
          <div class="soft small">Hosts</div>
          <div class="figure-value">
            <a href="#/hosts">{`${count(troubled.length)} failing`}</a>
          </div>
          <div class="soft small">
            {troubled.length === 0 ? `${count(hosts.length)} configured` : troubled.map(sinceWhen).join(", ")}
          </div>
        </div>
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

/** Every stretch of the period, those without requests too. */
function Chart({ title, of, format, axis = () => format, parts, isMost }: ChartProps) {
  const known = new Map(of.stretches.map((stretch) => [Date.parse(stretch.start), stretch]));
  const bars = [];
  for (let start = Date.parse(of.since); start <= endOf(of); start += of.stretch_ms) {
    const stretch = known.get(start);
    const values = Object.values(parts).map((part) => (stretch === undefined ? 0 : part(stretch)));
    bars.push({ label: labelOf(start, of.stretch_ms), values });
  }
  return (
    <BarChart
      title={title}
      bars={bars}
      series={Object.keys(parts)}
      format={format}
      axis={axis}
      isMost={isMost}
    />
  );
}

interface ChartProps {
  readonly title: string;
  readonly of: OverviewAnswer;
  readonly format: (value: number) => string;
  readonly axis?: (values: readonly number[]) => (value: number) => string;
  readonly parts: Parts;
  /** The highest bar says more than their sum. */
  readonly isMost?: boolean | undefined;
}

import type { UsageAnswer } from "../../api/usage.ts";
import { milliseconds } from "../format.ts";
import { useGet, useLive } from "../resource.ts";
import { ExportButton } from "./export-button.tsx";
import { Choice, useField } from "./field.tsx";
import { useKeyNames } from "./key-state.tsx";
import { Loaded } from "./page.tsx";
import { mainNames, Periods, SPLITS, UsageBars } from "./usage-bars.tsx";

/** Spend, requests and first-token times of the balance or of one key. */
export function UsageCharts({ keyId }: { keyId?: string }) {
  const period = useField("week");
  const split = useField<string>("model");
  const usage = useGet<UsageAnswer>("v1/usage", {
    period: period.value,
    by: split.value,
    key_id: keyId ?? "",
  });
  const shown = usage.data === null ? [] : mainNames(usage.data);
  const names = useKeyNames(
    "v1/keys",
    shown.filter((name) => split.value === "key" && name.startsWith("key_")),
  );
  useLive(usage);
  return (
    <section class="card charts" aria-labelledby="usage">
      <div class="head">
        <h2 id="usage">Usage</h2>
        <Periods {...period} />
      </div>
      <Loaded of={usage}>
        {(data) =>
          data.stretches.length === 0 ? (
            <p class="soft">
              No requests in this period. Choose a longer one, or send a request from the{" "}
              <a href="#/playground">playground</a>.
            </p>
          ) : (
            <>
              <Choice label="By" options={SPLITS} {...split} />
              <UsageBars of={data} nameOf={(name) => names.get(name) ?? (name || "no host")} />
              <FirstTokens of={data} />
              <div class="row">
                <ExportButton
                  label="usage"
                  file={`usage-${period.value}-${data.since.slice(0, 10)}`}
                  columns={COLUMNS}
                  rows={async () => data.stretches}
                />
              </div>
              {data.truncated && <p class="hint">Only the newest 50,000 requests are counted.</p>}
            </>
          )
        }
      </Loaded>
    </section>
  );
}

const COLUMNS = ["start", "name", "requests", "failed", "input_tokens", "output_tokens", "cost_usd"] as const;

/**
 * By model and host, the slowest on top: the bar is the median, the thin rest up to what 19 of 20 stay
 * within.
 */
function FirstTokens({ of: { routes } }: { of: UsageAnswer }) {
  const timed = routes
    .filter(({ first_token_ms }) => first_token_ms.p50 !== null)
    .sort((a, b) => b.first_token_ms.p50! - a.first_token_ms.p50!);
  if (timed.length === 0) return null;
  const longest = Math.max(...timed.map(({ first_token_ms }) => first_token_ms.p95!), 1);
  return (
    <figure class="chart">
      <figcaption>
        <h3>First token</h3>
        <span class="soft small">median · 95th percentile</span>
      </figcaption>
      <ul class="cards">
        {timed.slice(0, MAX_TIMED).map(({ model, host, requests, first_token_ms: { p50, p95 } }) => (
          <li key={`${model} ${host}`}>
            <div class="meter-words">
              <span>
                {model} <span class="soft">on {host}</span>
              </span>
              <span>
                {milliseconds(p50!)} <span class="soft">· {milliseconds(p95!)}</span>
                <span class="unseen">
                  {" "}
                  over {requests} {requests === 1 ? "request" : "requests"}
                </span>
              </span>
            </div>
            <div class="range" aria-hidden="true">
              <i class="range-p95" style={{ width: `${(p95! / longest) * 100}%` }} />
              <i class="range-p50" style={{ width: `${(p50! / longest) * 100}%` }} />
            </div>
          </li>
        ))}
      </ul>
      {timed.length > MAX_TIMED && (
        <p class="hint">
          The slowest {MAX_TIMED} of {timed.length}.
        </p>
      )}
    </figure>
  );
}

const MAX_TIMED = 10;

import type { AttemptAnswer, ReceiptAnswer, ReceiptState } from "../../api/receipts.ts";
import { ERRORS } from "../../units/errors/codes.ts";
import { perMillion } from "../../units/numbers.ts";
import { count, milliseconds, second, tagsText, timeZone, usd, words } from "../format.ts";
import { CopiedId } from "./copy-button.tsx";
import { type Column, Table } from "./list.tsx";
import { type Fact, Facts, Head, Note, Section } from "./page.tsx";
import { StateTag } from "./receipt-table.tsx";

/** One request: its way through the hosts, its tokens, its price and its cost; `facts` are whose it is. */
export const ReceiptView = ({ of, facts }: { of: ReceiptAnswer; facts: readonly Fact[] }) => (
  <>
    <Head
      title={of.model ?? of.model_requested ?? "A refused request"}
      lead={`${second(of.created_at)} ${timeZone()}`}
    />
    <p class="row">
      <StateTag of={of} />
      {of.error_code !== null && (
        <a href={`docs/errors#${of.error_code}`} target="_blank" rel="noreferrer">
          {of.error_code}
        </a>
      )}
      <CopiedId label="the receipt's id" value={of.id} />
    </p>
    <Why of={of} />
    <div class="grid-2">
      <Cost of={of} />
      <section class="card">
        <h2>Request</h2>
        <Facts
          of={[
            ["Requested model", of.model_requested ?? "not known"],
            ["Served by", of.host ?? "no host"],
            ["API", `${of.surface}${of.stream ? ", streamed" : ""}`],
            ...facts,
            ...(of.tags === undefined ? [] : [["Tags", tagsText(of.tags)] as const]),
            ...(of.price_list === undefined ? [] : [["Price list", of.price_list] as const]),
            ["First token after", of.first_token_ms === null ? "—" : milliseconds(of.first_token_ms)],
            ["Finished after", of.total_ms === null ? "—" : milliseconds(of.total_ms)],
          ]}
        />
      </section>
    </div>
    <Timeline of={of} />
  </>
);

/** The bill, line by line. Reasoning is a part of the output and is no line of its own. */
function Cost({ of }: { of: ReceiptAnswer }) {
  const { tokens, price, charges } = of;
  const parts = charges ?? [{ model: null, tokens, price }];
  const lines = parts.flatMap((part) => linesOf(part));
  const name = ({ label, model, reasoning }: CostLine) => (
    <>
      {label}
      {model !== null && <div class="soft small">{model}</div>}
      {label === "Output" && reasoning > 0 && (
        <div class="soft small">{count(reasoning)} of which reasoning</div>
      )}
    </>
  );
  const columns: Column<CostLine>[] = [
    ["Tokens", "", name],
    ["Number", "end", ({ amount }) => count(amount)],
    ["Per million", "end", ({ each }) => (each === undefined ? "—" : perMillion(each))],
    ["Amount", "end", ({ amount, each }) => (each === undefined ? "—" : usd((amount * each) / 1_000_000))],
  ];
  return (
    <section class="card">
      <h2>Cost</h2>
      <Table
        of={lines}
        by={({ model, label }) => `${model} ${label}`}
        columns={columns}
        foot={
          <tr>
            <th scope="row" colSpan={3}>
              Charged
            </th>
            <td class="end" data-label="Charged">
              <strong>{usd(of.cost_usd)}</strong>
            </td>
          </tr>
        }
      />
      <p class="hint">
        {of.held_usd > 0 && `${usd(of.held_usd)} was held while it ran. `}
        {of.write_off && `${usd(of.write_off_usd)} was written off: the host failed early. `}
        {price === null && "Free of charge. "}
        {price?.above_prompt !== undefined &&
          `These are the prices of prompts with more than ${count(price.above_prompt)} tokens. `}
        Tokens {tokens.source === "host" ? "as the host reported them" : "as the gateway counted them"}.
      </p>
    </section>
  );
}

interface CostLine {
  readonly label: string;
  /** Null where all is one model's. */
  readonly model: string | null;
  readonly amount: number;
  readonly each: number | undefined;
  readonly reasoning: number;
}

interface CostPart extends Pick<ReceiptAnswer, "price"> {
  readonly model: string | null;
  readonly tokens: Omit<ReceiptAnswer["tokens"], "source">;
}

function linesOf({ model, tokens, price }: CostPart): readonly CostLine[] {
  const { cache_write_5m = 0, cache_write_30m = 0, cache_write_1h = 0, cache_write_12h = 0 } = tokens;
  const kept = cache_write_5m + cache_write_30m + cache_write_1h + cache_write_12h;
  const { audio_input = 0, audio_output = 0, reasoning } = tokens;
  return (
    [
      ["Input", tokens.input - audio_input, price?.input],
      ["Audio input", audio_input, price?.audio_input],
      ["Read from cache", tokens.cache_read, price?.cache_read],
      ["Written to cache", tokens.cache_write - kept, price?.cache_write],
      ["Written to cache for 5 minutes", cache_write_5m, price?.cache_write_5m],
      ["Written to cache for 30 minutes", cache_write_30m, price?.cache_write_30m],
      ["Written to cache for an hour", cache_write_1h, price?.cache_write_1h],
      ["Written to cache for 12 hours", cache_write_12h, price?.cache_write_12h],
      ["Output", tokens.output - audio_output, price?.output],
      ["Audio output", audio_output, price?.audio_output],
    ] as const
  )
    .filter(([label, amount]) => amount > 0 || label === "Input" || label === "Output")
    .map(([label, amount, each]) => ({ label, model, amount, each, reasoning }));
}

/** Hosts in the order in which they were tried, each as long as it took. */
function Timeline({ of: { state, attempts, first_token_ms, total_ms } }: { of: ReceiptAnswer }) {
  const tried = attempts.reduce((sum, { ms }) => sum + ms, 0);
  const whole = Math.max(total_ms ?? 0, tried, 1);
  let from = 0;
  const spans = attempts.map((attempt) => {
    const span = { ...attempt, from };
    from += attempt.ms;
    return span;
  });
  // Which model was asked says nothing new where it was always the same.
  const mixed = new Set(attempts.map(({ model }) => model)).size > 1;
  const last = spans.at(-1);
  const answering = total_ms !== null && total_ms > tried && last !== undefined && served(last);
  return (
    <Section title="Attempts" class="card">
      {spans.length === 0 ? (
        <p class="soft">
          {state === "recovered"
            ? "The gateway stopped before it recorded which hosts it tried."
            : "No host was tried."}
        </p>
      ) : (
        <ol class="cards timeline">
          {spans.map((span, index) => (
            <li key={index}>
              <div class="timeline-words">
                <strong>{span.host}</strong> {mixed && <span class="soft">{span.model}</span>}{" "}
                <AttemptTag of={span} /> <span class="soft">{milliseconds(span.ms)}</span>
                {span.detail !== null && span.detail !== undefined && (
                  <span class="soft small"> {span.detail}</span>
                )}
              </div>
              <Span from={span.from} length={span.ms} whole={whole} served={served(span)} />
            </li>
          ))}
          {answering && (
            <li>
              <div class="timeline-words">
                <strong>Answer</strong>{" "}
                <span class="soft">{milliseconds(total_ms - tried)} after the first token</span>
              </div>
              <Span from={tried} length={total_ms - tried} whole={whole} served />
            </li>
          )}
        </ol>
      )}
      {first_token_ms !== null && (
        <p class="hint">
          First token after {milliseconds(first_token_ms)}
          {total_ms !== null && ` of ${milliseconds(total_ms)}`}.
        </p>
      )}
    </Section>
  );
}

const served = ({ outcome }: AttemptAnswer): boolean => outcome === "opened" || outcome === "answered";

const AttemptTag = ({ of }: { of: AttemptAnswer }) => (
  <span class={`tag ${served(of) ? "good" : "bad"}-tag`}>{words(of.outcome)}</span>
);

const Span = ({ from, length, whole, served }: SpanProps) => (
  <div class="span" aria-hidden="true">
    <i
      class={served ? "served" : "failed"}
      style={{ marginLeft: `${(from / whole) * 100}%`, width: `${Math.max(0.6, (length / whole) * 100)}%` }}
    />
  </div>
);

interface SpanProps {
  readonly from: number;
  readonly length: number;
  readonly whole: number;
  readonly served: boolean;
}

/** Why a request did not end as others do, and what to do about it; nothing for one that succeeded. */
function Why({ of: { state, error_code, attempts } }: { of: ReceiptAnswer }) {
  const failed = attempts.filter(({ outcome }) => outcome !== "opened" && outcome !== "answered");
  const row = error_code === null ? null : ERRORS[error_code];
  // The message itself went to the client: receipts do not keep it.
  const when = row?.when.replaceAll(/ The message [^.]*\./g, "") ?? ENDS[state];
  if (when === undefined) return null;
  return (
    <Note tone="warn" more={row !== null && <p class="small">{row.fix}</p>}>
      {failed.length > 0 && (
        <strong>
          {failed
            .map(({ host, outcome, detail }) => `${host}: ${(detail ?? words(outcome)).replace(/\.$/, "")}. `)
            .join("")}
        </strong>
      )}
      {when}
    </Note>
  );
}

/** What is no error and still not a whole answer. */
const ENDS: Partial<Record<ReceiptState, string>> = {
  cancelled: "The client left before the answer was complete. What had been delivered was charged.",
  written_off: "The host failed before it had produced 50 tokens, so nothing was charged.",
  recovered: "The gateway stopped while this request was running. What had been delivered was charged.",
};

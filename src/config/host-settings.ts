import { Type } from "@sinclair/typebox";
import { type Host, SURFACE_NAMES } from "../catalog/catalog.ts";
import { DEFAULT_CONCURRENT } from "../hosts/slots/host-slots.ts";
import { MASK, readAddress } from "./address.ts";
import { HOST_KEYS, reportKeys } from "./host-keys.ts";
import { count, ms, oneOf, plain, secret, text, webAddress, yesOrNo } from "./kinds.ts";
import { describe, type Path, type ReportProblem } from "./problem.ts";
import { QUIRKS } from "./quirks.ts";
import { joined, mapOf, required, section, setting, type ValueOf } from "./setting.ts";
import { SIMULATED_ADDRESS } from "./simulated-model.ts";

/** A row of `hosts`. */
const ROWS = mapOf(
  {
    id: required(
      text("letters, digits, dots, dashes or underscores, at most 64", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
      "letters, digits, `.`, `_`, `-`; at most 64",
    ),
    base_url: required(
      { ...webAddress("an http:// or https:// address, or simulated"), read: hostAddress },
      "such as `https://api.openai.com/v1`; the endpoint's path is appended, and a query in it is kept; `simulated`: the built-in host",
    ),
    speaks: required(
      {
        ...plain(
          Type.Array(oneOf(SURFACE_NAMES).schema, {
            minItems: 1,
            expected: `a list of at least one of: ${SURFACE_NAMES.join(", ")}`,
          }),
        ),
        read: eachOnce,
      },
      "wire languages: `chat.completions`, `responses`, `messages`",
    ),
    api_key: setting({ ...secret(), read: readSecret }, null, {
      doc: "the host's key, usually from an environment variable",
      otherwise: "none is sent",
    }),
    keys: setting(HOST_KEYS, undefined, {
      doc: "several keys of this host, instead of `api_key` ([more](hosts.md#several-keys))",
      otherwise: "only `api_key`",
    }),
    auth: setting(oneOf(["bearer", "x-api-key"]), "bearer", {
      doc: "how the key is sent: `bearer` (`Authorization: Bearer`), `x-api-key`",
    }),
    headers: setting(
      {
        schema: Type.Record(
          Type.String(),
          Type.String({ maxLength: 4096, expected: "the header's value", secret: true }),
          { expected: "a map from header names to values", secret: true },
        ),
        read: readHeaders,
        // A host may take its key in a header of its own.
        show: (headers) => Object.fromEntries(Object.keys(headers).map((name) => [name, MASK])),
      },
      {},
      { doc: "sent with every request" },
    ),
    on_disconnect: setting(oneOf(["cancel", "drain"]), "cancel", {
      doc: "when a client disconnects: `cancel` ends the call; `drain` reads to the end, for hosts that bill it all anyway, and reserves the whole ceiling",
    }),
    bills_cancelled: setting(oneOf(["prompt"]), undefined, {
      doc: "`prompt`: if the client leaves before the first token, the host charges the prompt, and so does the gateway",
      otherwise: "nothing",
    }),
    refusals: setting(oneOf(["free"]), undefined, {
      doc: "`free`: the host charges nothing for a [refusal](routing.md#refusals) without content, and neither does the gateway",
      otherwise: "charged by the host's usage",
    }),
    fallbacks: setting(oneOf(["native"]), undefined, {
      doc: "`native`: the host receives a client's `fallbacks` and [falls back by itself](routing.md#hosts-that-fall-back-by-themselves)",
      otherwise: "the gateway falls back",
    }),
    max_concurrent: setting(count(1, 100_000), undefined, {
      doc: "the most requests in flight at the host, on this machine; the gateway lowers it while the host complains",
      shown: DEFAULT_CONCURRENT,
    }),
    cache_ms: setting(ms(), undefined, {
      doc: "how long the host keeps a cached prompt, so how long a conversation [returns](routing.md#conversations) to it",
      otherwise: "300000",
    }),
    auto_cache: setting(yesOrNo(), undefined, {
      doc: "`true`: the gateway marks what the host should [cache](routing.md#prompt-caches), if the client marks nothing",
      shown: false,
    }),
    paused: setting(yesOrNo(), undefined, {
      doc: "`true`: the host gets no new requests and finishes open ones",
      shown: false,
    }),
    region: setting(
      text("letters, digits, dots, dashes or underscores, at most 64", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
      undefined,
      {
        doc: "where the host runs, in your own words, such as `eu`, for a key's [policy](routing.md#a-keys-policy)",
        otherwise: "not known",
      },
    ),
    data_collection: setting(oneOf(["allow", "deny"]), undefined, {
      doc: "`deny`: the host neither keeps prompts nor trains on them; requests can require such hosts",
      shown: "allow",
    }),
    zdr: setting(yesOrNo(), undefined, {
      doc: "`true`: zero data retention: the host keeps nothing of a request",
      shown: false,
    }),
    quirks: section(QUIRKS),
  },
  "a host: { id, base_url, speaks, … }",
);

export const HOST = joined(ROWS, join, ({ privacy, ...host }) => {
  if (privacy === undefined) return host;
  return {
    ...host,
    dataCollection: privacy.collectsNothing ? "deny" : "allow",
    zdr: privacy.retainsNothing,
  } as const;
});

function join(
  { dataCollection, zdr, ...host }: ValueOf<typeof ROWS>,
  _: unknown,
  path: Path,
  report: ReportProblem,
): Host {
  reportKeys(host, path, report);
  if (dataCollection === undefined && zdr === undefined) return host;
  return { ...host, privacy: { collectsNothing: dataCollection === "deny", retainsNothing: zdr ?? false } };
}

function eachOnce<T extends string>(speaks: readonly T[], path: Path, report: ReportProblem): readonly T[] {
  if (new Set(speaks).size < speaks.length) report(path, speaks.join(", "), "each of them only once");
  return speaks;
}

/** Providers show the whole address of an endpoint in their examples. */
function hostAddress(written: string, path: Path, report: ReportProblem): string | undefined {
  if (written === SIMULATED_ADDRESS) return written;
  const address = readAddress(written, path, report);
  const endpoint = address === undefined ? undefined : ENDPOINT.exec(new URL(address).pathname)?.[0];
  if (endpoint === undefined) return address;
  report(path, describe(written), `the address without \`${endpoint}\`, which the gateway appends`);
  return undefined;
}

const ENDPOINT = /\/(chat\/completions|completions|responses|messages)$/;

/** A line break in a header would let its author write further ones. */
export const HEADER_TEXT = /^[\t\x20-\x7e]*$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** How shells, and other gateways' files, write `${NAME}`. */
const OTHER_REFERENCE = /^(?:\$|os\.environ\/|env\.|env:)([A-Z][A-Z0-9_]{2,63})$/;
/** The transport decides how a message is framed and where it goes. */
const TRANSPORT_HEADERS = new Set([
  "host",
  "content-length",
  "connection",
  "transfer-encoding",
  "expect",
  "te",
  "upgrade",
]);

function readSecret(written: string, path: Path, report: ReportProblem): string | undefined {
  const meant = OTHER_REFERENCE.exec(written)?.[1];
  if (meant !== undefined)
    report(path, "the name of an environment variable", `a reference to it: \${${meant}}`);
  else if (!HEADER_TEXT.test(written))
    report(path, "a string with characters that a header cannot hold", "a secret in printable ASCII");
  else if (/^["'\s]|["'\s]$/.test(written))
    report(
      path,
      "a string with quotes or spaces around it",
      "the secret alone: docker's --env-file keeps quotes",
    );
  else return written;
  return undefined;
}

function readHeaders(
  rows: Readonly<Record<string, string>>,
  path: Path,
  report: ReportProblem,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(rows)) {
    const lower = name.toLowerCase();
    if (!HEADER_NAME.test(name)) report([...path, name], describe(name), "the name of an HTTP header");
    else if (TRANSPORT_HEADERS.has(lower))
      report([...path, name], describe(name), `none of ${[...TRANSPORT_HEADERS].join(", ")}`);
    else if (!HEADER_TEXT.test(value))
      report([...path, name], "a string with control characters", "printable ASCII");
    else if (Object.hasOwn(headers, lower))
      report([...path, name], describe(name), "each header only once, in whatever case");
    else headers[lower] = value;
  }
  return headers;
}

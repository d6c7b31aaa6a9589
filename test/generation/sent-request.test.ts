import { describe, expect, test } from "bun:test";
import type { Route, SurfaceName } from "../../src/catalog/catalog.ts";
import type { Quirks } from "../../src/catalog/quirks.ts";
import { sentRequest } from "../../src/generation/sent-request.ts";
import { encodeFor } from "../../src/hosts/host-request.ts";
import type { Candidate } from "../../src/routing/candidate.ts";
import type { GenerationRequest } from "../../src/surfaces/surface.ts";
import { pairing } from "../../src/surfaces/surfaces.ts";
import { refused } from "../../src/units/errors/refusal.ts";
import { Random } from "../sim/random.ts";
import { readRequest } from "../surfaces/harness.ts";

/** Hosts, by what they speak and their quirks. */
const at = (speaks: SurfaceName, quirks: Quirks = {}): Candidate => {
  const route = { host: { id: speaks, speaks: [speaks], quirks }, model: "host-model" } as unknown as Route;
  const model = { id: "test/model", maxOutputTokens: 64_000, contextLength: 400_000 } as Candidate["model"];
  return { model, route, price: {} as Candidate["price"], hostSurface: speaks };
};
const CHAT = "chat.completions";
const STRICT: Quirks = { coreFieldsOnly: true, strictMessages: true };
const HOSTS: Candidate[] = [
  at("responses"),
  at("messages"),
  at(CHAT),
  at("responses", { knownFieldsOnly: true }),
  at("messages", { knownFieldsOnly: true }),
  at(CHAT, STRICT),
  at(CHAT, { maxCompletionTokens: true }),
];

const priced = (request: GenerationRequest, ...candidates: Candidate[]) =>
  sentRequest(request, { candidates }, 16_384, pairing).priced;

/** All that a hold, a bound and a count are computed from. */
function pricedBy({ body, ...request }: GenerationRequest) {
  const { promptBound, mediaTokens, promptHasFiles } = request;
  const { promptWithoutAudio, promptUnseen, answersInAudio, promptRetentions } = request;
  return {
    ...{ promptBound, mediaTokens, promptHasFiles },
    ...{ promptWithoutAudio, promptUnseen, answersInAudio, promptRetentions },
    body: body.length,
  };
}

type Body = Record<string, unknown>;
const FUNCTION = { type: "function", name: "look", parameters: { type: "object" }, strict: false };
const SEARCH = { type: "web_search", external_web_access: true };
const LONG = "word ".repeat(2_000);

const REQUESTS: Record<SurfaceName, Body> = {
  responses: { input: "hi", store: false, max_output_tokens: 100 },
  messages: { messages: [{ role: "user", content: "hi" }], max_tokens: 100 },
  "chat.completions": { messages: [{ role: "user", content: "hi" }], max_tokens: 100 },
};
/** What one host or another leaves out. */
const MORE: Record<SurfaceName, Body> = {
  responses: {
    tools: [FUNCTION, SEARCH],
    input: [
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: LONG }] },
      { role: "user", content: "hi" },
    ],
    lora_path: LONG,
    max_new_tokens: 5,
    compaction: { trigger: 5 },
    multi_agent: true,
    context_management: [{ type: "compaction", compact_threshold: 100 }],
    prompt_cache_retention: "24h",
    unknown_field: { cache_control: { type: "ephemeral", ttl: "1h" }, text: LONG },
  },
  messages: {
    api_base: "http://elsewhere.test",
    multi_agent: { agents: 5 },
    compaction: { trigger: 5 },
    n: 8,
    context_management: { edits: [{ type: "compact_20260112" }] },
    unknown_field: { image: { type: "document", source: { type: "url", url: "http://x" } }, text: LONG },
    cache_control: { type: "ephemeral", ttl: "1h" },
  },
  "chat.completions": {
    lora_path: LONG,
    keep_alive: 5,
    usage: { include: true },
    cache_control: { type: "ephemeral", ttl: "1h" },
    metadata: { note: LONG },
    compaction: { trigger: 5 },
    best_of: 8,
    user: LONG,
    unknown_field: LONG,
  },
};
const SURFACES = Object.keys(REQUESTS) as SurfaceName[];

/** The request without what is named. */
function without(body: Body, names: readonly string[]): Body {
  const rest = { ...body };
  for (const name of names) {
    if (name === "tools[].web_search") {
      rest.tools = (rest.tools as object[]).filter((tool) => tool !== SEARCH);
      if ((rest.tools as object[]).length === 0) delete rest.tools;
    } else if (name === "reasoning")
      rest.input = (rest.input as Body[]).filter(({ type }) => type !== "reasoning");
    else delete rest[name];
  }
  return rest;
}

function omittedAt(request: GenerationRequest, candidate: Candidate): readonly string[] | null {
  const ceilings = { outputCeiling: null, defaultMaxOutputTokens: 16_384 };
  const body = encodeFor(request, candidate, ceilings, pairing);
  return refused(body) ? null : body.body.omitted;
}

describe("what no host of the plan is sent touches neither hold, nor bound, nor count", () => {
  test("whatever is left out, of any mix of members, for one host or several", () => {
    const random = new Random(7);
    const seen = new Set<string>();
    for (let round = 0; round < 3_000; round++) {
      const surface = random.pick(SURFACES);
      const body: Body = { model: "test/model", ...REQUESTS[surface] };
      for (const [name, value] of Object.entries(MORE[surface]))
        if (random.chance(0.35)) body[name] = name === "tools" ? random.pick([[SEARCH], value]) : value;
      const request = readRequest(surface, body);
      const plan = Array.from({ length: 1 + random.below(3) }, () => random.pick(HOSTS));
      const omitted = plan.map((host) => omittedAt(request, host)).filter((names) => names !== null);
      if (omitted.length === 0) continue;
      const nowhere = omitted[0]!.filter((name) => omitted.every((names) => names.includes(name)));
      for (const name of nowhere) seen.add(`${surface} ${name}`);
      const reduced = readRequest(surface, without(body, nowhere));
      const context = `${JSON.stringify(Object.keys(body))} at ${plan.map(({ hostSurface, route }) => hostSurface + JSON.stringify(route.host.quirks))} without ${nowhere}`;
      const [whole, rest] = [priced(request, ...plan), priced(reduced, ...plan)];
      expect(pricedBy(whole), context).toEqual(pricedBy(rest));
      // The framing of another language may raise no estimate, whatever it does to the bound.
      expect(whole.promptEstimate, context).toBeLessThanOrEqual(request.promptEstimate);
    }
    expect(seen.size).toBeGreaterThan(20);
  });

  test.each<[string, Body, Candidate[], boolean]>([
    [
      "a search that every host leaves out",
      { tools: [SEARCH, FUNCTION] },
      [HOSTS[0]!, HOSTS[1]!, HOSTS[2]!],
      false,
    ],
    ["a search alone", { tools: [SEARCH] }, [HOSTS[0]!], false],
    [
      "a search that one host runs",
      { tools: [SEARCH] },
      [HOSTS[1]!, at("responses", { ownTools: true })],
      true,
    ],
    [
      "tools of another server, which the host reads",
      { tools: [{ type: "mcp", server_label: "x", server_url: "http://x" }] },
      [HOSTS[0]!],
      true,
    ],
    [
      "a member that one host knows and the other does not",
      { multi_agent: true },
      [HOSTS[3]!, HOSTS[0]!],
      true,
    ],
    ["a member that no host knows", { multi_agent: true }, [HOSTS[3]!, HOSTS[1]!], false],
  ])("content of unknown size: %s", (_, more, hosts, isUnseen) => {
    const request = readRequest("responses", { model: "test/model", ...REQUESTS.responses, ...more });
    expect(priced(request, ...hosts).promptUnseen).toBe(isUnseen);
  });

  test("and a request of which nothing is left out is not copied", () => {
    const request = readRequest("responses", { model: "test/model", ...REQUESTS.responses });
    expect(priced(request, HOSTS[0]!, HOSTS[1]!)).toBe(request);
  });
});

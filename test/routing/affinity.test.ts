import { describe, expect, test } from "bun:test";
import type { Route, SurfaceName } from "../../src/catalog/catalog.ts";
import { Affinity, type RemoteRoute } from "../../src/routing/affinity.ts";
import { cacheLifetimeMs } from "../../src/routing/cache-lifetime.ts";
import { type Candidate, paidCandidates, type RouteQuery } from "../../src/routing/candidate.ts";
import { type ConversationId, conversationOf } from "../../src/routing/conversation.ts";
import { readOverrides } from "../../src/routing/overrides.ts";
import { makePlan, type Plan } from "../../src/routing/plan.ts";
import { NO_BYTES } from "../../src/surfaces/json/bytes.ts";
import type { Json } from "../../src/surfaces/json/json.ts";
import type { BalanceId } from "../../src/units/id.ts";
import { ManualClock } from "../fakes/clock.ts";
import { catalogOf, model, queryFor, route, routeStateOf, tries } from "./world.ts";

const MINE = "bal_mine" as BalanceId;
const YOURS = "bal_yours" as BalanceId;

const of = (
  surface: SurfaceName,
  json: object,
  headers: Record<string, string> = {},
  balance = MINE,
  model = "x/one",
) =>
  conversationOf(
    { surface, model, json: json as Json, outline: json as Json, list: null, body: NO_BYTES },
    new Headers(headers),
    balance,
  );

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });

describe("turns of one conversation", () => {
  const table: [string, SurfaceName, object, object][] = [
    [
      "chat",
      "chat.completions",
      { messages: [{ role: "system", content: "Be brief." }, user("Hello")] },
      {
        messages: [
          { role: "system", content: "Be brief." },
          user("Hello"),
          assistant("Hi"),
          user("And now?"),
        ],
      },
    ],
    [
      "messages, whose cache breakpoints move",
      "messages",
      {
        system: "Be brief.",
        messages: [user([{ type: "text", text: "Hello", cache_control: { type: "ephemeral" } }])],
      },
      {
        system: [{ type: "text", text: "Be brief." }],
        messages: [user([{ type: "text", text: "Hello" }]), assistant("Hi"), user("More")],
      },
    ],
    [
      "responses, whose first answer is a thought",
      "responses",
      { instructions: "Be brief.", input: [user([{ type: "input_text", text: "Hello" }])] },
      {
        instructions: "Be brief.",
        input: [
          user([{ type: "input_text", text: "Hello" }]),
          { type: "reasoning", encrypted_content: "…" },
          { type: "function_call", name: "f", arguments: "{}" },
          { type: "function_call_output", output: "1" },
        ],
      },
    ],
    [
      "a text alone, and as a list",
      "responses",
      { input: "Hello" },
      { input: [user("Hello"), assistant("Hi")] },
    ],
  ];
  for (const [name, surface, first, second] of table) {
    test(name, () => {
      const [one, two] = [of(surface, first), of(surface, second)];
      expect(one.conversation).toBe(two.conversation);
      expect([one.turned, two.turned]).toEqual([false, true]);
    });
  }

  test("another opening is another conversation", () => {
    const opening = (text: string) => of("chat.completions", { messages: [user(text)] }).conversation;
    expect(opening("Hello")).not.toBe(opening("Hello!"));
    expect(opening("x".repeat(5_000))).not.toBe(opening("x".repeat(5_001)));
  });

  test("the same words of another balance are another conversation", () => {
    const json = { messages: [user("Hello")] };
    expect(of("chat.completions", json, {}, YOURS).conversation).not.toBe(
      of("chat.completions", json).conversation,
    );
  });

  const inHeaders = [
    "x-session-affinity",
    "thread-id",
    "x-claude-code-session-id",
    "x-opencode-session",
    "x-task-id",
    "x-roo-task-id",
    "x-kilocode-taskid",
    "x-amp-thread-id",
    "x-grok-conv-id",
    "conversation_id",
    "x-session-id",
    "session-id",
    "session_id",
    "agent-session-id",
    "goose-session-id",
    "x-litellm-session-id",
    "x-qwen-code-session-id",
    "x-client-session-id",
    "helicone-session-id",
    "x-openwebui-chat-id",
  ];
  test.each(inHeaders)("a session id in %s names it from the first turn, whatever is said", (name) => {
    const [one, two] = ["Hello", "Something else"].map((text) =>
      of("responses", { input: text }, { [name]: "s1" }),
    );
    expect(one).toEqual({ conversation: two!.conversation, turned: true });
    expect(of("responses", { input: "Hello" }, { [name]: "s2" }).conversation).not.toBe(one!.conversation);
  });

  const inBodies: [string, (id: string) => object][] = [
    ["session_id", (id) => ({ session_id: id })],
    [
      "Claude Code's metadata.user_id",
      (id) => ({ metadata: { user_id: JSON.stringify({ device_id: "d", session_id: id }) } }),
    ],
    ["the older form of it", (id) => ({ metadata: { user_id: `user_ab_account_cd_session_${id}` } })],
    ["metadata.session_id", (id) => ({ metadata: { session_id: id } })],
    ["metadata.cursorConversationId", (id) => ({ metadata: { cursorConversationId: id } })],
    [
      "Codex's client_metadata",
      (id) => ({ client_metadata: { thread_id: id, turn_id: crypto.randomUUID() } }),
    ],
    ["prompt_cache_key", (id) => ({ prompt_cache_key: id })],
  ];
  test.each(inBodies)("so does one in the body: %s", (_, body) => {
    const [one, two] = ["Hello", "Something else"].map((text) =>
      of("messages", { messages: [user(text)], ...body("s1") }),
    );
    expect(one).toEqual({ conversation: two!.conversation, turned: true });
    expect(of("messages", { messages: [user("Hello")], ...body("s2") }).conversation).not.toBe(
      one!.conversation,
    );
  });

  test("where a client names several, the narrower goes before", () => {
    const codex = { "session-id": "s", "thread-id": "t", "x-client-request-id": "t" };
    const thread = of("responses", { input: "Hi", prompt_cache_key: "k" }, codex);
    expect(of("responses", { input: "Hi" }, { "thread-id": "t" })).toEqual(thread);
    const opencode = { "x-session-affinity": "a", "x-session-id": "s", "x-parent-session-id": "p" };
    const affine = of("messages", { session_id: "b" }, opencode);
    expect(of("messages", {}, { "x-session-affinity": "a" })).toEqual(affine);
    const header = of("messages", { session_id: "b" }, { "x-session-id": "s" });
    expect(of("messages", {}, { "x-session-id": "s" })).toEqual(header);
  });

  test("agents of Claude Code that share a session have prompts of their own", () => {
    const main = { "x-claude-code-session-id": "s" };
    const explorer = { ...main, "x-claude-code-agent-id": "e" };
    expect(of("messages", {}, explorer).conversation).not.toBe(of("messages", {}, main).conversation);
    expect(of("messages", { messages: [user("x")] }, explorer)).toEqual(of("messages", {}, explorer));
  });

  test("each model of a session has a home of its own", () => {
    const session = { "x-session-id": "s" };
    const title = of("messages", {}, session, MINE, "x/small");
    expect(title.conversation).not.toBe(of("messages", {}, session).conversation);
  });

  test("the session of another balance is another conversation", () => {
    const session = { "session-id": "s" };
    expect(of("responses", {}, session, YOURS).conversation).not.toBe(
      of("responses", {}, session).conversation,
    );
  });

  test("ids of requests, traces and people are no sessions", () => {
    const plain = of("chat.completions", { messages: [user("Hello")] });
    const headers = { "x-client-request-id": "r", "x-litellm-trace-id": "t", traceparent: "p" };
    const body = { messages: [user("Hello")], user: "u", metadata: { user_id: "somebody" } };
    expect(of("chat.completions", body, headers)).toEqual(plain);
  });

  test("an endless id is read to its 2,048th character", () => {
    const long = (end: string) => of("responses", {}, { "session-id": `${"x".repeat(10_000)}${end}` });
    expect(long("a")).toEqual(long("b"));
    expect(long("a").conversation).not.toBe(long("ab").conversation);
  });

  test("so does prompt_cache_key", () => {
    const one = of("chat.completions", { prompt_cache_key: "k", messages: [user("Hello")] });
    expect(of("chat.completions", { prompt_cache_key: "k", messages: [user("Bye")] })).toEqual(one);
    expect(one.turned).toBe(true);
  });

  const strange: [string, object][] = [
    ["nothing", {}],
    ["ids that are none", { session_id: 7, metadata: { user_id: "{", session_id: {} }, client_metadata: [] }],
    ["an endless user", { metadata: { user_id: `{${"x".repeat(1_000_000)}` } }],
    ["nulls", { messages: [null, user(null), user([null, 1])], system: null, prompt_cache_key: null }],
    ["an endless list", { messages: Array(1_000).fill(user("x")) }],
    ["an endless text", { messages: [user("x".repeat(10_000_000))] }],
  ];
  for (const [name, json] of strange) {
    test(`whatever the body holds: ${name}`, () => {
      for (const surface of ["chat.completions", "messages", "responses"] as const) {
        expect(of(surface, json).conversation).toBeNumber();
      }
    });
  }
});

const ROUTES = [route("a"), route("b"), route("c")];
const ONE = model("x/one", ROUTES);
const CATALOG = catalogOf([ONE, model("x/two", [route("b")])], { both: ["x/one", "x/two"] });
const stopAt = (host: string, of = "x/one"): Candidate =>
  paidCandidates(CATALOG.models.get(of)!, { surface: "chat.completions" }).find(
    ({ route: one }) => one.host.id === host,
  )!;

const FIVE_MINUTES = 5 * 60_000;
const ELSEWHERE = { isHome: false, keptMs: FIVE_MINUTES };

describe("a plan", () => {
  const clock = new ManualClock();
  const affinity = new Affinity(clock);
  const { conversation } = of("chat.completions", { messages: [user("Hello")] });
  const planned = (more: Partial<RouteQuery> = {}, down: string[] = []): string => {
    const query = queryFor("x/one", { sticky: affinity.stickyRoute(conversation), ...more });
    return tries(
      makePlan({ ...query, catalog: CATALOG, routeState: routeStateOf({ down }) }, () => "") as Plan,
    ).join(" ");
  };
  const overrides = (provider: object) =>
    readOverrides({ provider }, "chat.completions") as RouteQuery["overrides"];

  test("begins where the conversation was served before", () => {
    expect(planned()).toBe("x/one@a x/one@b x/one@c");
    affinity.served(conversation, stopAt("b"), ELSEWHERE);
    expect(planned()).toBe("x/one@b x/one@a x/one@c");
  });
  test("but not while that host rests", () => expect(planned({}, ["b"])).toBe("x/one@a x/one@c"));
  test("nor against an order that the client lists; a wish for speed or price does not move it", () => {
    expect(planned({ overrides: overrides({ order: ["c"] }) })).toStartWith("x/one@c");
    for (const sort of ["price", "latency", "throughput"] as const) {
      expect(planned({ overrides: overrides({ sort }) })).toStartWith("x/one@b");
      expect(planned({ order: sort })).toStartWith("x/one@b");
    }
  });
  test("nor where a filter left it out", () => {
    expect(planned({ overrides: overrides({ ignore: ["b"] }) })).toBe("x/one@a x/one@c");
  });
  test("another model of that host is no home, but for Auto its candidate is", () => {
    affinity.served(conversation, stopAt("b", "x/two"), ELSEWHERE);
    expect(planned()).toStartWith("x/one@a");
    expect(planned({ model: "gateway/auto:both" })).toStartWith("x/two@b");
  });
  test("it follows the host that served last, and is forgotten when that has forgotten its prompt", () => {
    affinity.served(conversation, stopAt("c"), ELSEWHERE);
    clock.advance(FIVE_MINUTES);
    expect(planned()).toStartWith("x/one@c");
    clock.advance(1);
    expect(planned()).toStartWith("x/one@a");
  });
  test("the conversations that are remembered are bounded", () => {
    for (let name = 0; name < 60_000; name++) affinity.served(name as never, stopAt("c"), ELSEWHERE);
    expect(affinity.stickyRoute(0 as never)).toBeNull();
    expect(affinity.stickyRoute(59_999 as never)?.host).toBe("c");
  });
});

describe("what processes tell each other", () => {
  function pair() {
    const clock = new ManualClock();
    const batches: (readonly RemoteRoute[])[] = [];
    const other = new Affinity(clock);
    const one = new Affinity(clock, (routes) => {
      batches.push(routes);
      other.onRemoteRoutes(routes);
    });
    const turn = (conversation: number, host: string, isHome = false) =>
      one.served(conversation as ConversationId, stopAt(host), { isHome, keptMs: FIVE_MINUTES });
    const seen = (conversation: number) => other.stickyRoute(conversation as ConversationId)?.host ?? null;
    const pass = async (ms: number) => {
      clock.advance(ms);
      // What follows a batch runs in a later microtask.
      for (let step = 0; step < 3; step++) await null;
    };
    return { pass, batches, turn, seen };
  }
  const soon = 1_000;

  test("a conversation that is elsewhere, in one batch with others", async () => {
    const { pass, batches, turn, seen } = pair();
    turn(1, "b");
    turn(2, "c");
    expect(batches).toEqual([]);
    await pass(soon);
    expect([seen(1), seen(2), batches.length]).toEqual(["b", "c", 1]);
  });
  test("nothing of one that is where all would send it", async () => {
    const { pass, batches, turn, seen } = pair();
    for (let at = 0; at < 100; at++) turn(at, "a", true);
    await pass(soon);
    expect([seen(1), batches.length]).toEqual([null, 0]);
  });
  test("once, and again before the others forget it", async () => {
    const { pass, batches, turn, seen } = pair();
    for (let minute = 0; minute < 60; minute++) {
      turn(1, "b");
      await pass(60_000);
      expect(seen(1)).toBe("b");
    }
    expect(batches).toHaveLength(20);
  });
  test("that it has moved, were it back home", async () => {
    const { pass, turn, seen } = pair();
    turn(1, "b");
    await pass(soon);
    turn(1, "c");
    await pass(soon);
    expect(seen(1)).toBe("c");
    turn(1, "a");
    await pass(soon);
    expect(seen(1)).toBe("a");
  });
  test("not that one began at home before it learned where the conversation is", async () => {
    const { pass, turn, seen } = pair();
    turn(1, "b");
    await pass(soon);
    turn(1, "a", true);
    await pass(soon);
    expect(seen(1)).toBe("b");
  });
  test("no more at a time than a thousand; the rest at their next turns", async () => {
    const { pass, batches, turn, seen } = pair();
    for (let at = 0; at < 1_500; at++) turn(at, "b");
    await pass(soon);
    expect([batches[0]!.length, seen(1_499)]).toEqual([1_000, null]);
    turn(1_499, "b");
    await pass(soon);
    expect(seen(1_499)).toBe("b");
  });
  test("a process that cannot be reached does not stop the others' memory", async () => {
    const clock = new ManualClock();
    let sent = 0;
    const affinity = new Affinity(clock, async () => {
      sent++;
      throw new Error("away");
    });
    for (const turn of [1, 2]) {
      affinity.served(turn as ConversationId, stopAt("b"), ELSEWHERE);
      clock.advance(soon);
      for (let step = 0; step < 3; step++) await null;
      expect(sent).toBe(turn);
    }
  });
});

describe("a host is taken to keep a prompt", () => {
  const table: [string, object, Partial<Route>, number][] = [
    ["five minutes", {}, {}, FIVE_MINUTES],
    ["as long as its operator says", {}, { on: { cacheMs: 900_000 } } as object, 900_000],
    ["as long as the route says", {}, { cacheMs: 60_000, on: { cacheMs: 900_000 } } as object, 60_000],
    ["a day where the request asks for that", { prompt_cache_retention: "24h" }, {}, 24 * 3_600_000],
    ["an hour of a conversation that thinks", { reasoning: { effort: "low" } }, {}, 3_600_000],
    ["an hour of one with thoughts on Messages", { thinking: { type: "adaptive" } }, {}, 3_600_000],
    ["five minutes of one that is set not to think", { thinking: { type: "disabled" } }, {}, FIVE_MINUTES],
  ];
  test.each(table)("%s", (_, json, row, expected) => {
    const request = { json: json as Record<string, unknown>, promptRetentions: {} };
    expect(cacheLifetimeMs(request, route("a", row))).toBe(expected);
  });
  test("an hour where a mark says so", () => {
    expect(cacheLifetimeMs({ json: {}, promptRetentions: { "1h": "cache_control.ttl" } }, route("a"))).toBe(
      3_600_000,
    );
  });
});

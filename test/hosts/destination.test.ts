import { describe, expect, test } from "bun:test";
import type { Host, SurfaceName } from "../../src/catalog/catalog.ts";
import { Destinations, ownHeaders } from "../../src/hosts/destination.ts";
import { hostRow } from "../fakes/host.ts";

const CHAT = "chat.completions";
const hostOf = (row: Partial<Host> = {}): Host => hostRow({ url: "http://127.0.0.1" }, row);

describe("what every request to a host says", () => {
  const sent = (row: Partial<Host>, stream = false) =>
    new Destinations().at(hostOf(row), CHAT, stream).headers;

  test("its credentials, where the host wants them, and what is sent and awaited", () => {
    const type = { "content-type": "application/json" };
    const json = { ...type, accept: "application/json" };
    expect(sent({ apiKey: null })).toEqual(json);
    expect(sent({ apiKey: "k" })).toEqual({ ...json, authorization: "Bearer k" });
    expect(sent({ apiKey: "k", auth: "x-api-key" })).toEqual({ ...json, "x-api-key": "k" });
    expect(sent({ apiKey: null }, true)).toEqual({ ...type, accept: "text/event-stream" });
  });

  test("the operator's headers, over which credentials win", () => {
    const headers = { "x-tenant": "one", authorization: "Basic no", accept: "text/plain" };
    expect(sent({ apiKey: "k", headers })).toEqual({
      "x-tenant": "one",
      authorization: "Bearer k",
      "content-type": "application/json",
      accept: "application/json",
    });
  });

  test("is made once for each language, streamed or not, and again for a host that a reload has changed", () => {
    const destinations = new Destinations();
    const [before, after] = [hostOf({ apiKey: "old" }), hostOf({ apiKey: "new" })];
    const at = (host: Host, spoken: SurfaceName, stream: boolean) => destinations.at(host, spoken, stream);
    expect(at(before, CHAT, true)).toBe(at(before, CHAT, true));
    expect(at(before, "messages", true).path).toBe("/messages");
    expect(at(before, CHAT, false).headers.accept).toBe("application/json");
    expect(at(after, CHAT, true).headers.authorization).toBe("Bearer new");
  });
});

describe("what a request says in addition", () => {
  const AGENT = { "user-agent": "sdk/1" };
  const OURS = { ...AGENT, "x-stainless-lang": "js", "openai-beta": "a=1", "anthropic-beta": "mine" };
  const CASES: [
    what: string,
    operators: Record<string, string>,
    client: SurfaceName,
    spoken: SurfaceName,
    clients: Record<string, string>,
    own: Record<string, string>,
  ][] = [
    ["the client's, in its own language", {}, CHAT, CHAT, OURS, OURS],
    ["nothing of the client's language to a host of another", {}, CHAT, "responses", OURS, AGENT],
    [
      "a version to each host of Messages",
      {},
      CHAT,
      "messages",
      OURS,
      { ...AGENT, "anthropic-version": "2023-06-01" },
    ],
    [
      "the operator's version and betas",
      { "anthropic-version": "2030-01-01", "anthropic-beta": "theirs", "x-tenant": "one" },
      CHAT,
      "messages",
      AGENT,
      { ...AGENT, "anthropic-version": "2030-01-01", "anthropic-beta": "theirs" },
    ],
    [
      "the client's version over the operator's, and the betas of both",
      { "anthropic-version": "2030-01-01", "anthropic-beta": "theirs" },
      "messages",
      "messages",
      { "anthropic-version": "2023-06-01", "anthropic-beta": "mine" },
      { "anthropic-version": "2023-06-01", "anthropic-beta": "theirs,mine" },
    ],
  ];
  for (const [what, headers, client, spoken, clients, own] of CASES) {
    test(what, () => expect(ownHeaders(hostOf({ headers }), client, spoken, clients)).toEqual(own));
  }
  test("the version that the body needs over the operator's, and the client's over both", () => {
    const host = hostOf({ headers: { "anthropic-version": "2026-10-21" } });
    const version = (client: SurfaceName, clients: Record<string, string>) =>
      ownHeaders(host, client, "messages", clients, { version: "2023-06-01" })["anthropic-version"];
    expect(version(CHAT, AGENT)).toBe("2023-06-01");
    expect(version("messages", { "anthropic-version": "2026-10-21" })).toBe("2026-10-21");
  });
});

import { expect, test } from "bun:test";
import type { Host } from "../../src/catalog/catalog.ts";
import { redact } from "../../src/hosts/redact.ts";
import { hostRow } from "../fakes/host.ts";

const KEY = "sk-proj-Ab3+dE/6gHiJ";
const host = hostRow(
  { url: "https://user:pa55-word@llm.corp.example:8443" },
  { apiKey: KEY, headers: { "x-team": "team-secret-7", authorization: "Basic dXNlcjpwYXNzd29yZA==" } },
);
const container = hostRow({ url: "http://vllm:8000" }, { apiKey: "EMPTY" });
const keyed = hostRow({ url: "http://127.0.0.1:9" }, { baseUrl: "https://a.example/v1?code=hunter-22" });
const odd = hostRow({ url: "https://user:p%40ss-word%2F1@llm.corp.example" });
const six = hostRow({ url: "http://[2001:db8::7]:8000" });

const escapedWhole = (text: string) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join("");

const ROWS: [what: string, host: Host, message: string, shown: string][] = [
  ["the key", host, `No model for key ${KEY}.`, "No model for key [hidden]."],
  ["the key, as a query has it", host, "GET /?k=sk-proj-Ab3%2BdE%2F6gHiJ", "GET /?k=[hidden]"],
  ["the key, as a query has it in small letters", host, "k=sk-proj-Ab3%2bdE%2f6gHiJ", "k=[hidden]"],
  ["the key in base64", host, `bad ${btoa(KEY)}`, "bad [hidden]"],
  ["the key in base64 behind a user", host, `Basic ${btoa(`me:${KEY}`)}!`, "Basic [hidden]!"],
  ["the key in base64 amid JSON", host, `bad ${btoa(`{"k":"${KEY}"}`)}.`, "bad [hidden]."],
  [
    "the key in base64 for addresses",
    host,
    `bad ${Buffer.from(`~~${KEY}~~`).toString("base64url")}`,
    "bad [hidden]",
  ],
  ["the key in hexadecimal", host, `bad ${Buffer.from(KEY).toString("hex").toUpperCase()}`, "bad [hidden]"],
  ["the key, every character escaped", host, `bad ${escapedWhole(KEY)}`, "bad [hidden]"],
  [
    "words in base64",
    host,
    `bad ${btoa("temperature of 3 is too high")}`,
    `bad ${btoa("temperature of 3 is too high")}`,
  ],
  ["the key, with stars", host, "Incorrect key: sk-proj-****gHiJ.", "Incorrect key: [hidden]"],
  ["the key, cut off", host, `bad: ${"x".repeat(9)} sk-proj-Ab3…`, `bad: ${"x".repeat(9)} [hidden]…`],
  ["a header's value", host, "team 'team-secret-7' is over", "team '[hidden]' is over"],
  ["a header's credentials", host, "bad dXNlcjpwYXNzd29yZA==", "bad [hidden]"],
  ["a password of the address", host, "401 for user pa55-word", "401 for user [hidden]"],
  ["a password with a sign in it", odd, "401 for user p@ss-word/1", "401 for user [hidden]"],
  ["words with stars", host, "use **bold** or the**model**", "use **bold** or the**model**"],
  ["the address", host, "POST https://llm.corp.example:8443/v1/chat failed", "POST [host]/chat failed"],
  ["the address with its user", host, "to https://u:p@llm.corp.example:8443/v1", "to [host]"],
  ["the host alone, in capitals", host, "upstream LLM.corp.example:8443 down", "upstream [host] down"],
  ["the host without a port", host, "upstream llm.corp.example.", "upstream [host]."],
  ["another host's name", host, "see docs.llm.corp.example", "see docs.llm.corp.example"],
  ["a longer name", host, "see llm.corp.example-2", "see llm.corp.example-2"],
  ["a container", container, "http://vllm:8000/v1/models: 404", "[host]/models: 404"],
  ["a container with its port", container, "connect vllm:8000 refused", "connect [host] refused"],
  ["a word that is also a container", container, "vllm: the prompt is EMPTY", "vllm: the prompt is EMPTY"],
  ["a value in the address's query", keyed, "code=hunter-22 is unknown", "code=[hidden] is unknown"],
  ["an IPv6 address", six, "no route to http://[2001:db8::7]:8000/v1", "no route to [host]"],
  ["an address behind the host", host, "dial tcp 10.2.3.4:5432: refused", "dial tcp [host]: refused"],
  ["another of those", host, "from 192.168.1.7 and 172.20.0.3:80", "from [host] and [host]"],
  ["a version", host, "needs vllm 10.2.3 or 0.10.1.1", "needs vllm 10.2.3 or 0.10.1.1"],
  ["a public address", host, "from 203.0.113.9", "from 203.0.113.9"],
  ["nothing of the operator's", host, "`temperature` must be at most 2", "`temperature` must be at most 2"],
];

test.each(ROWS)("of a host's words, %s", (_, host, message, shown) => {
  expect(redact(message, host)).toBe(shown);
});

test("sentences of a host that wants to cost time cost none", () => {
  for (const text of [
    "a*".repeat(500),
    "*".repeat(1_000),
    "a".repeat(1_000),
    "10.".repeat(300),
    "http://".repeat(140),
  ]) {
    for (let round = 0; round < 100; round++) redact(text, host);
  }
});

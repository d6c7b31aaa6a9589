import { expect, test } from "bun:test";
import { rounds } from "../rounds.ts";
import { type AnswerCase, answerCases, fuzzAnswers } from "./answers.ts";
import { corpus } from "./cases.ts";
import { socketCases } from "./frames.ts";
import { fuzzRequests, type RequestCase, requestCases } from "./requests.ts";

/**
 * What strangers send, to the gateway and from its hosts, ends in an answer: never in a failure of our own, a
 * connection that waits for ever, or money that is held or missing. `bun run fuzz` tries many more.
 */
const CASES = rounds(600, 2_000, 5_000);
const SOCKET_CASES = rounds(200, 1_000);

test("what was found once does not come back: requests", async () => {
  expect(await fuzzRequests(corpus<RequestCase>("requests"))).toEqual([]);
}, 600_000);

test("what was found once does not come back: hosts' answers", async () => {
  expect(await fuzzAnswers(corpus<AnswerCase>("answers"))).toEqual([]);
}, 600_000);

test(`${CASES} mutated requests`, async () => {
  expect(await fuzzRequests(requestCases(1, CASES))).toEqual([]);
}, 600_000);

test("what was found once does not come back: WebSockets", async () => {
  expect(await fuzzRequests(corpus<RequestCase>("sockets"))).toEqual([]);
}, 600_000);

test(`${SOCKET_CASES} mutated WebSockets`, async () => {
  expect(await fuzzRequests(socketCases(1, SOCKET_CASES))).toEqual([]);
}, 600_000);

test(`${CASES} mutated answers of hosts`, async () => {
  expect(await fuzzAnswers(answerCases(1, CASES))).toEqual([]);
}, 600_000);

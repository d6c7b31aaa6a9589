import { expect, test } from "bun:test";
import { SlotPool } from "../../../src/hosts/slots/slot-pool.ts";
import { SlotShare } from "../../../src/hosts/slots/slot-share.ts";

function shareOf() {
  const messages: string[] = [];
  const share = new SlotShare({
    request: (count) => messages.push(`more ${count}`),
    giveBack: (count) => messages.push(`give back ${count}`),
  });
  return { share, sent: () => messages.splice(0) };
}

test("a worker requests the slots that it lacks, once", () => {
  const { share, sent } = shareOf();
  share.need(3);
  share.need(3);
  share.need(2);
  expect(sent()).toEqual(["more 3"]);
  share.given(3);
  share.need(4);
  expect(sent()).toEqual(["more 1"]);
});

test("slots that came unrequested do not make a worker request more later", () => {
  const { share, sent } = shareOf();
  share.need(1);
  share.given(5);
  share.need(5);
  expect(sent()).toEqual(["more 1"]);
  share.need(6);
  expect(sent()).toEqual(["more 1"]);
});

test("slots that were recalled go back as soon as they are unused, each once", () => {
  const { share, sent } = shareOf();
  share.given(4);
  share.recalled(3, 3);
  share.settle(3);
  expect(sent()).toEqual(["give back 1"]);
  share.settle(0);
  share.settle(0);
  expect(sent()).toEqual(["give back 2"]);
  expect(share.held).toBe(1);
});

test("a pool is idle once no worker has a slot or wants one", () => {
  const pool = new SlotPool(1, 2, { give: () => {}, recall: () => {} });
  pool.requested(0, 1);
  expect(pool.idle).toBeFalse();
  pool.requested(1, 1);
  pool.returned(0, 1);
  expect(pool.idle).toBeFalse();
  pool.returned(1, 1);
  expect(pool.idle).toBeTrue();
});

test("if all workers lack slots, the one with more is asked for half of the difference, and the other for none", () => {
  const recalled: string[] = [];
  const pool = new SlotPool(4, 2, {
    give: () => {},
    recall: (worker, count) => recalled.push(`${count} of ${worker}`),
  });
  pool.requested(0, 4);
  pool.requested(0, 1);
  pool.requested(1, 4);
  expect(recalled).toEqual(["2 of 0"]);
});

test("a worker that returns more than was recalled is not made to return the same again", () => {
  const recalled: string[] = [];
  const pool = new SlotPool(4, 2, {
    give: () => {},
    recall: (worker, count) => recalled.push(`${count} of ${worker}`),
  });
  pool.requested(0, 4);
  pool.returned(0, 1);
  pool.requested(1, 1);
  expect(recalled).toEqual([]);
  pool.requested(1, 2);
  expect(recalled).toEqual(["2 of 0"]);
  pool.returned(0, 2);
  pool.requested(1, 1);
  expect(recalled).toEqual(["2 of 0", "1 of 0"]);
});

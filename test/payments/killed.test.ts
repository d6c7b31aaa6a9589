import { afterAll, expect, test } from "bun:test";
import { closeWorld, kill, ONCE, openWorld, WRITES } from "./kills.ts";

const world = await openWorld();
afterAll(() => closeWorld(world));

for (const write of WRITES)
  test(`killed once it is ${write}: credited once`, async () => {
    expect(await kill(write, world)).toEqual(ONCE);
  });

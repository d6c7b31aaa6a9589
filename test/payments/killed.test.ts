import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeWorld, kill, ONCE, openWorld, type World, WRITES } from "./kills.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => closeWorld(world));

for (const write of WRITES)
  test(`killed once it is ${write}: credited once`, async () => {
    expect(await kill(write, world)).toEqual(ONCE);
  });

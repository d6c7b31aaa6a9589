/** bun run rooms: the floors with files and lines of each room, and the arrows between rooms with their imports. */
import { circles } from "./circles.ts";
import { house, sources } from "./house.ts";
import { FLOORS, MAX_ARROWS, roomOf } from "./layout.ts";
import { arrows } from "./rules.ts";

const files = await sources();
const modules = await house();
const found = arrows(modules);

for (const [below, rooms] of [...FLOORS.entries()].reverse())
  for (const room of rooms) {
    const own = files.filter(({ path }) => roomOf(path) === room);
    const lines = own.reduce((sum, { text }) => sum + text.split("\n").length - 1, 0);
    const to = found.filter(({ from }) => from === room).map(({ to, imports }) => `${to} ${imports}`);
    console.log(`${below + 1}  ${room}: ${own.length} files, ${lines} lines → ${to.sort().join(", ")}`);
  }
console.log(`${found.length} arrows of at most ${MAX_ARROWS}`);
for (const circle of circles(modules, "values and types")) console.log(`circle: ${circle.join(", ")}`);

/** The release after this one, which differs in its schema: started in place of `src/main.ts`. */
import "./next-schema.ts";

await import("../../../src/main.ts");

import { type FleetAuthority, MemoryAuthority, type SendInquiries } from "./memory-authority.ts";
import { DatabaseAuthority } from "./sqlite-authority.ts";
import type { World } from "./world.ts";

/** Over maps, or that of a keeper on SQLite. */
export const authorityOf = (world: World, sqlite: boolean, recall: SendInquiries): FleetAuthority =>
  sqlite ? new DatabaseAuthority(world.apart(0), recall) : new MemoryAuthority(recall);

/** Where mutants are made, and which tests have to notice them: those nearby, then for what these miss, wider ones. */
export interface Room {
  readonly name: string;
  readonly sources: readonly string[];
  readonly near: readonly string[];
  readonly wide: readonly string[];
}

/** At least this share of a room's mutants has to be killed. */
export const FLOOR = 0.9;

const room = (name: string, sources: string[], near: string[], wide: string[]): Room => ({
  name,
  sources,
  near,
  wide,
});

export const ROOMS: readonly Room[] = [
  room(
    "ledger",
    ["src/ledger"],
    ["test/ledger"],
    ["test/store", "test/generation", "test/sim", "test/gateway"],
  ),
  room("generation", ["src/generation"], ["test/generation"], ["test/gateway", "test/access", "test/sim"]),
  room("hosts", ["src/hosts"], ["test/hosts"], ["test/generation", "test/gateway"]),
  room(
    "limits",
    ["src/ledger/limits", "src/hosts/slots", "src/units"],
    ["test/ledger/limits", "test/hosts/slots", "test/units"],
    ["test/http", "test/generation", "test/gateway"],
  ),
  room("store", ["src/store"], ["test/store"], ["test/server/workers", "test/postgres", "test/http"]),
  room("customers", ["src/customers"], ["test/customers"], ["test/store", "test/http", "test/access"]),
  room("routing", ["src/routing"], ["test/routing"], ["test/hosts", "test/generation", "test/gateway"]),
  room("config", ["src/config"], ["test/config"], ["test/cli", "test/http", "test/gateway"]),
  room("cli", ["src/cli"], ["test/cli"], ["test/access"]),
];

export type StoreConfig = { readonly kind: "sqlite" } | { readonly kind: "postgres"; readonly url: string };

/** Where a node on PostgreSQL makes holds and settlements durable. */
export type JournalLocation = "disk" | "postgres";

/**
 * `strict`: acknowledged once on the disk. `relaxed`: acknowledged before that, and a power cut or a crash
 * can lose the last second.
 */
export type DurabilityMode = "strict" | "relaxed";

import { LRUCache } from "lru-cache";

/**
 * Keeps `most` entries, and forgets what was used least lately. It is bounded by size, each entry being of 1: one that is
 * bounded by `max` takes memory for all of them when it is made, which for those of a gateway came to 15 MB and 10 ms.
 */
export const boundedCache = <K extends {}, V extends {}>(
  most: number,
  dispose?: (value: V) => void,
): LRUCache<K, V> =>
  new LRUCache<K, V>({
    maxSize: most,
    sizeCalculation: () => 1,
    ...(dispose === undefined ? {} : { dispose }),
  });

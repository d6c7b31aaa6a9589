/** For code that receives faults where there must be none. */
export function rethrow(error: unknown): never {
  throw error;
}
